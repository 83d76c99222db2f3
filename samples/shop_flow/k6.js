// Customers of the shop of samples/webservice.py, for k6: see docs/coming-from-k6.md.
import { check, sleep } from "k6";
import exec from "k6/execution";
import http from "k6/http";

const BASE = __ENV.BASE || "http://127.0.0.1:8080";
const JSON_BODY = { headers: { "Content-Type": "application/json" } };
const [, ...ROWS] = open("customers.csv").trim().split("\n");

export const options = {
  vus: 4,
  iterations: 100,
  // the session of a virtual user lasts longer than an iteration
  noCookiesReset: true,
  thresholds: {
    checks: ["rate==1"],
    http_req_failed: ["rate==0"],
    "http_req_duration{name:order}": ["p(95)<2000"],
  },
};

export default function () {
  if (exec.vu.iterationInInstance === 0) {
    login();
  }
  if (Math.random() < 0.75) {
    look();
  } else {
    buy();
  }
  sleep(0.01 + Math.random() * 0.04);
}

function login() {
  const [name, password] = ROWS[(exec.vu.idInTest - 1) % ROWS.length].split(",");
  http.post(`${BASE}/login`, JSON.stringify({ name, password }), { ...JSON_BODY, tags: { name: "login" } });
}

function look() {
  const item = http.get(`${BASE}/items`, { tags: { name: "list" } }).json("0.id");
  const answer = http.get(`${BASE}/items/${item}`, { tags: { name: "item" } });
  check(answer, { "the item": (one) => one.json("id") === item });
}

function buy() {
  const answer = http.post(`${BASE}/orders`, JSON.stringify({ item: 1 }), { ...JSON_BODY, tags: { name: "order" } });
  check(answer, { ordered: (one) => one.status === 201 });
}
