"use strict";
// What the charts of all pages share; the page's own script follows.
const plots = (() => {
  const narrow = matchMedia("(max-width: 46rem)");
  const touch = matchMedia("(pointer: coarse)").matches;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const count = number => String(number).replace(/\B(?=(\d{3})+$)/g, ",").replace("-", "−");
  // Plotly reads a few tags in text: names must not be markup.
  const plain = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const brief = (text, most = 60) => (text.length <= most ? text : `…${text.slice(1 - most)}`);
  const share = (part, whole) => (whole ? (100 * part) / whole : 0);
  const shown = part => (part === 0 ? "0 %" : part < 0.001 ? "< 0.001 %" : `${Number(part.toPrecision(3))} %`);
  const range = length => Array.from({length}, (_, i) => i);

  const axis = more => ({
    gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"), automargin: true,
    fixedrange: touch, ...more, title: {text: more?.title ?? "", standoff: 6, font: {size: 12}},
  });
  const layout = more => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: touch ? false : "zoom",
    font: {family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("text")},
    modebar: {bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("text")},
    margin: {l: 8, r: 12, t: 8, b: 8}, hovermode: "closest", hoverlabel: {align: "left", font: {size: 12}},
    legend: {orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom"}, ...more,
  });
  const config = {displaylogo: false, responsive: true, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]]};

  const draw = (figure, made, label) => {
    let box = figure.querySelector(".plot"), sentence = figure.querySelector(".none");
    if (!made || typeof made === "string") {
      if (box) { Plotly.purge(box); box.remove(); }
      if (!sentence) figure.append(sentence = Object.assign(document.createElement("p"), {className: "none"}));
      sentence.textContent = made || "Nothing to draw.";
      return null;
    }
    sentence?.remove();
    if (!box) {
      figure.append(box = Object.assign(document.createElement("div"), {className: "plot"}));
      box.setAttribute("role", "img");
    }
    box.setAttribute("aria-label", label);
    Plotly.react(box, made.traces, made.layout, {...config, displayModeBar: figure.className === "wide" && !touch ? "hover" : false});
    return box;
  };

  const attempt = (figure, make, label) => {
    let made;
    try { made = make(); } catch (error) { console.error(error); made = `This chart could not be drawn: ${error.message}`; }
    return draw(figure, made, label);
  };

  // Again whenever widths or colours change; on paper everything is light.
  const drawn = drawAll => {
    drawAll();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    narrow.addEventListener("change", drawAll);
    addEventListener("beforeprint", drawAll);
    addEventListener("afterprint", drawAll);
    document.documentElement.dataset.charts = "drawn";
  };

  const figure = name => document.querySelector(`figure[data-chart="${name}"]`);
  const data = JSON.parse(document.getElementById("data").textContent);
  return {data, narrow, touch, colour, count, plain, brief, share, shown, range, axis, layout, attempt, drawn, figure};
})();
