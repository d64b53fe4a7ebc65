"use strict";
// What all reports share: tables that sort and filter, and commands that copy. No names outside.
(() => {
  const text = (row, column) => {
    const cell = row.cells[column];
    return cell ? cell.dataset.value ?? cell.textContent.trim() : "";
  };

  const sortBy = (table, column, header, numeric) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach(other => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const value = row => {
      const found = text(row, column);
      return numeric ? (found === "" ? -Infinity : Number(found)) : found;
    };
    const order = numeric ? (a, b) => a[0] - b[0] : (a, b) => a[0].localeCompare(b[0], "en", {numeric: true});
    const rows = [...body.rows].map(row => [value(row), row]).sort(order);
    body.append(...(down ? rows.reverse() : rows).map(pair => pair[1]));
  };

  document.querySelectorAll("table.sortable").forEach(table => {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(table, column, header, header.dataset.kind === "number"));
    });
  });

  // Long names are shown without their middle; all of them is in the title.
  const words = row => [row, ...row.querySelectorAll("[title]")].map(part => part.title || part.textContent).join(" ").toLowerCase();

  const filter = table => {
    const wanted = document.querySelector(`.filter[data-table="${table.id}"]`).value.trim().toLowerCase();
    const only = document.querySelector(`.only[data-table="${table.id}"]`)?.checked;
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = (!only || "differs" in row.dataset) && (!wanted || words(row).includes(wanted));
      row.hidden = !fits;
      shown += fits;
    }
    document.querySelector(`.shown[data-table="${table.id}"]`).textContent =
      shown === table.tBodies[0].rows.length ? "" : `${shown} shown`;
  };
  document.querySelectorAll(".filter, .only").forEach(control =>
    control.addEventListener("input", () => filter(document.getElementById(control.dataset.table))));

  const copied = async words => {
    try {
      await navigator.clipboard.writeText(words);
      return true;
    } catch {
      // Files opened from disk have no clipboard in some browsers: the old way works there.
      const area = document.createElement("textarea");
      area.value = words;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  document.addEventListener("click", async event => {
    const button = event.target.closest(".copy");
    if (!button) return;
    button.textContent = (await copied(button.parentElement.querySelector("code").textContent)) ? "Copied" : "Select it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
})();
