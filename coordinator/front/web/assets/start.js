// Starts runs, and follows a run until it has a page of its own.
(() => {
  "use strict";
  const post = (url, key, body) => fetch(url, {
    method: "POST", headers: {"X-Osbench-Key": key}, body: body ? JSON.stringify(body) : undefined,
  });
  const element = (name, text) => {
    const found = document.createElement(name);
    found.textContent = text;
    return found;
  };

  const place = document.getElementById("start");
  if (place) {
    const said = document.getElementById("start-said"), buttons = [...place.querySelectorAll("button")];
    const tell = (text, bad, found) => {
      said.replaceChildren(Object.assign(element("p", text), {className: bad ? "bad" : ""}));
      for (const [title, several] of [["", found && found.problems], ["Without an effect:", found && found.notes]]) {
        if (!several || !several.length) continue;
        if (title) said.append(element("p", title));
        const list = Object.assign(document.createElement("ul"), {className: "problems"});
        list.append(...several.map(one => element("li", [one.place, one.message].filter(Boolean).join(": "))));
        said.append(list);
      }
      said.scrollIntoView({block: "nearest"});
    };
    const ask = async (name, url, body) => {
      for (const button of buttons) button.disabled = true;
      tell(`Checking ${name}`, false);
      try {
        const answer = await post(url, place.dataset.key, body);
        const text = await answer.text();
        if (answer.status === 202) return location.assign(JSON.parse(text).page);
        if (answer.status !== 200 && answer.status !== 422) return tell(text.trim(), true);
        const found = JSON.parse(text);
        tell(found.ok ? `${name} is a task that can be run.` : `${name} has problems:`, !found.ok, found);
      } catch (error) {
        tell(error.message, true);
      } finally {
        for (const button of buttons) button.disabled = false;
      }
    };
    for (const button of buttons) button.addEventListener("click", () => {
      const {check, task, again} = button.dataset;
      if (check) ask(check, "/start/check", {task: check});
      else if (task) ask(task, "/start", {task});
      else ask(again, "/start", {again});
    });
  }

  const starting = document.getElementById("starting");
  if (starting) {
    const run = starting.dataset.run, stop = document.getElementById("start-stop");
    const state = document.getElementById("start-state");
    const look = async () => {
      try {
        const answer = await fetch(`/starts/${run}/state`);
        if (!answer.ok) throw new Error((await answer.text()).trim());
        const found = await answer.json();
        if (found.state === "begun") return location.replace(`/runs/${run}`);
        if (found.state === "ended") return location.reload();
        document.getElementById("start-output").textContent = found.said || "It has printed nothing.";
      } catch (error) {
        state.textContent = error.message;
      }
      setTimeout(look, 500);
    };
    if (stop) stop.addEventListener("click", async () => {
      stop.disabled = true;
      const answer = await post(`/starts/${run}/stop`, starting.dataset.key);
      if (!answer.ok) state.textContent = (await answer.text()).trim();
    });
    look();
  }
})();
