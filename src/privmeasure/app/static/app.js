"use strict";
// What the page does beside its forms, which work without it: uploads, the plan as epsilon moves, progress.
for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;

const errors = document.getElementById("errors");
if (errors) errors.focus();
for (const link of document.querySelectorAll("#errors a")) {
  link.addEventListener("click", (event) => {
    const field = document.getElementById(link.hash.slice(1));
    if (!field) return;
    event.preventDefault();
    const closed = field.closest("details:not([open])");
    if (closed) closed.open = true;
    field.focus();
    field.scrollIntoView({ block: "center" });
  });
}

// A file: its bytes go as they are, and how far they are is shown.
const choose = document.getElementById("choose");
if (choose) {
  const file = document.getElementById("file"), fault = document.getElementById("file-fault");
  const send = document.getElementById("send"), bar = document.getElementById("sent");
  const fail = (text) => {
    fault.textContent = text;
    fault.hidden = false;
    file.setAttribute("aria-invalid", "true");
    send.disabled = false;
    bar.parentElement.hidden = true;
    file.focus();
  };
  send.addEventListener("click", () => {
    const chosen = file.files[0];
    fault.hidden = true;
    file.removeAttribute("aria-invalid");
    if (!chosen) return fail("Choose a file first.");
    if (chosen.size > Number(choose.dataset.limit)) return fail("The file is larger than uploads may be. Give its path instead.");
    const about = new URLSearchParams({ name: chosen.name });
    for (const name of ["delimiter", "decimal", "encoding"]) about.set(name, choose.elements[name].value);
    if (choose.elements.newlines.checked) about.set("newlines", "1");
    const request = new XMLHttpRequest();
    request.open("POST", `${choose.dataset.upload}?${about}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-Form-Token", choose.dataset.token);
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
    request.addEventListener("load", () => {
      let reply = {};
      try { reply = JSON.parse(request.responseText); } catch { reply = { error: request.responseText }; }
      if (reply.next) location.assign(reply.next); else fail(reply.error || "The file could not be taken.");
    });
    request.addEventListener("error", () => fail("The page does not answer. Is it still running?"));
    bar.value = 0;
    bar.parentElement.hidden = false;
    send.disabled = true;
    request.send(chosen);
  });
}

// A schema or a dictionary: public, and small; its text goes into the form.
const load = document.getElementById("load");
if (load) load.addEventListener("change", async () => {
  const chosen = load.files[0];
  if (!chosen) return;
  if (chosen.size > 2000000) { load.value = ""; return; }
  document.getElementById("text").value = await chosen.text();
  document.getElementById("name").value = chosen.name;
});

// A kind has fields of its own.
for (const kind of document.querySelectorAll("select[data-kind]")) {
  kind.addEventListener("change", () => {
    for (const field of kind.closest("fieldset").querySelectorAll("[data-kinds]")) {
      field.hidden = kind.value !== "" && !field.dataset.kinds.split(" ").includes(kind.value)
        || kind.value === "" && !field.dataset.kinds.includes("number integer category boolean");
    }
  });
}

// The plan follows epsilon.
const plan = document.getElementById("plan-form");
if (plan) {
  const epsilon = document.getElementById("epsilon"), slider = document.getElementById("slider");
  const live = document.getElementById("live"), said = document.getElementById("said");
  const values = slider.dataset.values.split(" ");
  let timer = 0, latest = 0;
  const number = (text) => { const [p, q] = text.split("/"); return q === undefined ? Number(p) : Number(p) / Number(q); };
  const place = () => {
    const wanted = number(epsilon.value);
    if (!(wanted > 0)) return;
    let best = 0;
    values.forEach((value, i) => { if (Math.abs(Math.log(value / wanted)) < Math.abs(Math.log(values[best] / wanted))) best = i; });
    slider.value = best;
    slider.setAttribute("aria-valuetext", `epsilon ${epsilon.value}`);
  };
  const show = async () => {
    const mine = ++latest;
    live.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(`${plan.dataset.live}?${new URLSearchParams(new FormData(plan))}`);
      const text = await reply.text();
      if (mine !== latest) return;
      live.innerHTML = text; // made by our own templates, which escape every text
      const headline = document.getElementById("headline");
      said.textContent = headline ? `Epsilon ${epsilon.value}. ${headline.textContent}` : "";
    } catch {
      said.textContent = "The page does not answer.";
    } finally {
      if (mine === latest) live.removeAttribute("aria-busy");
    }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(show, 150); };
  slider.addEventListener("input", () => {
    epsilon.value = values[slider.value];
    slider.setAttribute("aria-valuetext", `epsilon ${epsilon.value}`);
    soon();
  });
  plan.addEventListener("input", (event) => { if (event.target !== slider) { place(); soon(); } });
  place();
}

// A form that spends is sent once; the page behind it makes sure of that in any case.
const spend = document.getElementById("spend-form");
if (spend) spend.addEventListener("submit", () => { spend.querySelector("button").disabled = true; });

// Long work: how far it is, and where it leads.
const work = document.getElementById("work");
if (work) {
  const bar = document.getElementById("bar"), stage = document.getElementById("stage"), told = document.getElementById("told");
  const renew = async () => { // only this card: what was typed beside it stays
    const page = await (await fetch(work.dataset.here)).text();
    const card = new DOMParser().parseFromString(page, "text/html").getElementById("report-card");
    document.getElementById("finished").textContent = "The report is there.";
    document.getElementById("report-card").replaceWith(card);
  };
  const look = async () => {
    try {
      const state = await (await fetch(`${work.dataset.work}.json`)).json();
      if (state.done) return work.dataset.here ? renew() : location.replace(work.dataset.work);
      if (stage.textContent !== state.stage) { stage.textContent = state.stage; told.textContent = state.stage; }
      if (state.fraction > 0) bar.value = state.fraction; else bar.removeAttribute("value");
      setTimeout(look, 400);
    } catch {
      stage.textContent = told.textContent = "The page does not answer. Is it still running?";
    }
  };
  look();
}
