// A Node service for @opentelemetry/auto-instrumentations-node: a slow query in 3 % of requests.
//
//     node --require @opentelemetry/auto-instrumentations-node/register node_service.js PORT db

const http = require("node:http");
const { SpanKind, trace } = require("@opentelemetry/api");

const SLOW_MS = 200;
const tracer = trace.getTracer("items");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function query() {
    const attributes = { "db.system.name": "postgresql", "db.query.text": "SELECT * FROM items WHERE owner = 'anna'" };
    await tracer.startActiveSpan("SELECT items", { kind: SpanKind.CLIENT, attributes }, async (span) => {
        await pause(Math.random() < 0.03 ? SLOW_MS : 1);
        span.end();
    });
}

const server = http.createServer(async (request, response) => {
    await query();
    response.setHeader("Content-Type", "application/json");
    response.end('{"number": 17}');
});
// connections are reused for as long as the load lasts
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), "127.0.0.1");
