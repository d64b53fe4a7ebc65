"use strict";
// The charts of an evaluation, drawn from the JSON in #data.
(() => {
  const {data, narrow, colour, count, plain, brief, share, shown, range, axis, layout, attempt, drawn, figure} = plots;
  const fills = ["cumulative", "isolated", "reached", "proven"];
  const fill = k => colour(fills[k % fills.length]);
  const labels = names => names[narrow.matches ? "narrow" : "wide"].map(plain);
  const chosen = name => document.querySelector(`select[data-draws="${name}"]`)?.value ?? data.numerics[0];
  const middle = edges => range(edges.length - 1).map(i => (edges[i] + edges[i + 1]) / 2);
  const bars = (edges, counts, name, fill, more) => ({type: "bar", name: plain(name), x: middle(edges), y: counts,
    width: edges[1] - edges[0], marker: {color: fill, line: {width: 0}}, hoverinfo: "text", textposition: "none",
    hovertext: counts.map((n, i) => `${plain(name)}<br>${edges[i].toPrecision(3)} to ${edges[i + 1].toPrecision(3)}: ${count(n)} samples`),
    ...more});
  const powers = most => axis({title: "samples", type: "log", dtick: 1, exponentformat: "power",
    range: [Math.log10(0.6), Math.log10(Math.max(most, 10)) + 0.2]});

  const margins = () => {
    const {edges, samples, flips} = data.margins, first = data.numerics[0];
    const own = flips.map((counts, k) => [counts, data.pairs[k]])
      .filter(([counts], k) => counts.some(Boolean) && !data.alike.includes(k));
    // Flips of several pairs stand side by side within a bar of all samples.
    const wide = (edges[1] - edges[0]) / own.length;
    const traces = [bars(edges, samples[first], `all samples, ${first}`, fill(0), {opacity: 0.6}),
      ...own.map(([counts, pair], k) => bars(edges, counts, `flips ${pair.join(" → ")}`, fill(1 + (k % 3)),
        {x: counts.map((_, i) => edges[i] + (k + 0.5) * wide), width: wide}))];
    return {traces, layout: layout({barmode: "overlay", bargap: 0, showlegend: true,
      xaxis: axis({title: "margin", rangemode: "tozero"}), yaxis: powers(Math.max(...samples[first]))})};
  };

  const confusion = () => {
    const z = data.confusion[chosen("confusion")], names = labels(data.classes), whole = data.classes.whole.map(plain);
    const totals = z.map(row => row.reduce((sum, n) => sum + n, 0));
    const few = names.length <= (narrow.matches ? 12 : 24), at = range(names.length);
    const skip = Math.ceil(names.length / (narrow.matches ? 20 : 40));
    const ticks = at.filter(i => i % skip === 0);
    const side = {tickvals: ticks, ticktext: ticks.map(i => names[i]), showgrid: false, zeroline: false, tickfont: {size: few ? 12 : 10}};
    return {traces: [{type: "heatmap", x: at, y: at, z: z.map((row, i) => row.map(n => share(n, totals[i]))), zmin: 0, zmax: 100,
      colorscale: [[0, colour("heat-0")], [0.02, colour("heat-1")], [0.5, colour("heat-2")], [1, colour("heat-3")]],
      showscale: false, xgap: 1, ygap: 1, hoverinfo: "text",
      hovertext: z.map((row, i) => row.map((n, k) => `label ${whole[i]}<br>answer ${whole[k]}<br>${count(n)} of ${count(totals[i])} ${data.counted} (${shown(share(n, totals[i]))})`)),
      ...(few ? {text: z.map(row => row.map(n => (n ? count(n) : ""))), texttemplate: "%{text}"} : {})}],
      layout: layout({xaxis: axis({title: "answer", tickangle: -90, ...side}),
        yaxis: axis({title: "label", autorange: "reversed", ...side})})};
  };

  const classes = () => {
    const all = data.perClass, at = range(all.counts.length), names = Object.keys(all.shares);
    const percents = shares => shares.map(value => (value === null ? null : 100 * value));
    return {traces: names.map((name, k) => ({type: "bar", orientation: "h", name: plain(name), y: at, x: percents(all.shares[name]),
      marker: {color: fill(k + 1)}, hoverinfo: "text", textposition: "none",
      hovertext: at.map(i => `<b>${plain(brief(all.names.whole[i]))}</b><br>${plain(name)}: ${all.figure} ${
        shown(100 * (all.shares[name][i] ?? 0))}, ${count(all.counts[i])} ${all.counted}`)})),
      layout: layout({showlegend: names.length > 1, barmode: "group", bargap: 0.3, height: 90 + at.length * Math.max(18, 11 * names.length + 6),
        xaxis: axis({title: `${all.figure}, %`, range: [0, 100]}),
        yaxis: axis({autorange: "reversed", tickvals: at, ticktext: labels(all.names), showgrid: false, zeroline: false})})};
  };

  const scores = () => {
    const name = chosen("scores"), {edges, counts} = data.scores, [normal, unusual] = counts[name];
    return {traces: [bars(edges, normal, "normal", colour("reached"), {opacity: 0.7}), bars(edges, unusual, "anomalies", colour("isolated"), {opacity: 0.7})],
      layout: layout({barmode: "overlay", bargap: 0, showlegend: true, xaxis: axis({title: "score"}),
        yaxis: powers(Math.max(...normal, ...unusual))})};
  };

  const roc = () => ({
    traces: [{x: [0, 100], y: [0, 100], mode: "lines", hoverinfo: "skip", showlegend: false, line: {color: colour("muted"), dash: "dot", width: 1}},
      ...Object.entries(data.scores.roc).map(([name, points], k) => ({x: points.map(p => 100 * p[0]), y: points.map(p => 100 * p[1]),
        mode: "lines", name: plain(name), line: {color: fill(k + 1), width: 2, dash: ["solid", "dash", "dot", "dashdot"][k % 4]},
        hovertemplate: "%{y:.3g} % of anomalies at %{x:.3g} % of normal samples<extra></extra>"}))],
    layout: layout({showlegend: true, xaxis: axis({title: "normal samples above the score, %", range: [-1, 101]}),
      yaxis: axis({title: "anomalies above it, %", range: [-1, 102]})})});

  const drawAll = () => {
    for (const [name, has, make, words] of [
      ["margins", data.margins, margins, "How many samples have which margin, all and those that flip"],
      ["confusion", data.confusion, confusion, "Confusion matrix"],
      ["classes", data.perClass, classes, "Share of right answers per class"],
      ["scores", data.scores, scores, "Scores of normal samples and anomalies"],
      ["roc", data.scores, roc, "ROC curve"],
    ]) {
      const box = has && attempt(figure(name), make, words);
      // As high as its bars need.
      if (box && name === "classes") box.style.height = `${box.layout.height}px`;
    }
  };
  document.querySelectorAll("select[data-draws]").forEach(select => select.addEventListener("change", drawAll));
  drawn(drawAll);
})();
