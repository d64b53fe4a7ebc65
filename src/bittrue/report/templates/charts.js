"use strict";
// The charts of a comparison, drawn from the JSON in #data. A chart without data is a sentence, never an empty box.
(() => {
  const {data, narrow, colour, count, plain, brief, share, shown, range, axis, layout, attempt, drawn, figure} = plots;

  // Tensors by their position in the result.
  const order = (title, more) => axis({title, zeroline: false, range: [-0.5, data.names.length - 0.5],
    ...(data.names.length <= 12 ? {dtick: 1} : {}), ...more});

  const logarithmic = document.getElementById("logarithmic");

  const layers = () => {
    const all = data.layers, x = range(data.names.length), log = logarithmic.checked;
    const own = x.map(i => share(all.differing[i], all.elements[i]));
    const alone = x.map(i => (all.alone[i] === null ? null : share(all.alone[i], all.aloneElements[i])));
    const title = i => `<b>${plain(brief(data.names[i]))}</b><br>${plain(all.operator[i])}, tensor ${i}`;
    const text = (differing, elements, largest) => x.map(i => `${title(i)}<br>${count(differing[i] ?? 0)} of ${
      count(elements[i] ?? 0)} elements<br>largest |b − a| ${largest[i] ?? "not a number"}`);
    const ownText = text(all.differing, all.elements, all.largest);
    const aloneText = text(all.alone, all.aloneElements, all.aloneLargest);
    // Zeros have no place on a logarithmic axis; in isolation they say nothing on the other one either.
    const visible = values => values.map(value => (value || (!log && value === 0) ? value : null));
    const different = values => values.map(value => value || null);
    const line = (y, axisName, first) => ({x, y: visible(y), yaxis: axisName, name: "cumulative", text: ownText,
      hoverinfo: "text", mode: "lines+markers", line: {color: colour("cumulative"), width: 1.5}, legendgroup: "own",
      marker: {size: 4, color: colour("cumulative")}, showlegend: first});
    const points = (y, axisName, first) => ({x, y: different(y), yaxis: axisName, name: "in isolation", text: aloneText,
      hoverinfo: "text", mode: "markers", legendgroup: "alone", showlegend: first,
      marker: {size: 9, symbol: "diamond", color: colour("isolated"), line: {color: colour("surface"), width: 1}}});
    const kind = log ? "log" : "linear", rangemode = "tozero";
    return {
      traces: [line(own, "y", true), points(alone, "y", true), line(all.largest, "y2", false),
        points(all.aloneLargest, "y2", false)],
      layout: layout({
        xaxis: order("tensor, in A's execution order", {anchor: "y2"}),
        yaxis: axis({title: "differing, %", domain: [0.54, 1], type: kind, rangemode}),
        yaxis2: axis({title: "largest |b − a|", domain: [0, 0.46], type: kind, rangemode}),
        shapes: [{type: "line", x0: data.first, x1: data.first, yref: "paper", y0: 0, y1: 1,
          line: {color: colour("isolated"), width: 1, dash: "dot"}}],
      }),
    };
  };

  const both = detail => (detail.alone === "same" ? {own: detail.own, alone: null} : detail);
  const nearest = detail => (detail.alone && detail.alone !== "same" ? detail.alone : detail.own);

  const histogram = detail => {
    const {own, alone} = both(detail);
    const all = [own, alone].flatMap(found => found?.histogram ?? []);
    if (!all.length) return "There is no histogram for this tensor.";
    const value = key => { const n = Number(key.replace("−", "-")); return Number.isNaN(n) ? Infinity : n; };
    const keys = new Set(all.map(entry => entry[0]));
    const numbers = [...keys].map(value).filter(Number.isFinite);
    if (!detail.real && numbers.length) {
      // Neighbours without a bar belong into the picture: a lone bar says nothing about its place.
      const low = Math.min(-2, ...numbers), high = Math.max(2, ...numbers);
      if (high - low <= 40) range(high - low + 1).forEach(i => keys.add(String(low + i).replace("-", "−")));
    }
    const sorted = [...keys].sort((a, b) => (value(a) === value(b) ? 0 : value(a) - value(b)));
    const few = sorted.length <= 10;
    const bars = (found, name, fill) => ({type: "bar", name, x: found.histogram.map(e => e[0]),
      y: found.histogram.map(e => e[1]), marker: {color: colour(fill)}, hoverinfo: "text",
      hovertext: found.histogram.map(e => `${plain(e[0])}: ${count(e[1])} elements`),
      text: found.histogram.map(e => count(e[1])), textposition: few ? "outside" : "none", cliponaxis: false});
    const traces = [];
    if (alone?.histogram.length) traces.push(bars(alone, "in isolation", "isolated"));
    if (own?.histogram.length) traces.push(bars(own, detail.alone === "same" ? "cumulative, the same in isolation" : "cumulative",
      detail.alone === "same" ? "isolated" : "cumulative"));
    const top = Math.max(...all.map(entry => entry[1]), 1);
    return {traces, layout: layout({bargap: 0.2, showlegend: true,
      xaxis: axis({title: detail.real ? "b − a, units in the last place" : "b − a, LSB", type: "category",
        categoryorder: "array", categoryarray: sorted, range: [-0.5, sorted.length - 0.5],
        tickvals: few ? sorted : undefined, ticktext: few ? sorted.map(key => plain(brief(key, 12))) : undefined}),
      yaxis: axis({title: "elements", type: "log", dtick: 1, exponentformat: "power",
        range: [Math.log10(0.6), Math.log10(top) * 1.12 + 0.15]})})};
  };

  const ties = detail => {
    if (!detail.ties.length) return "No distance to a tie is known: the operator does not round here, or was not judged.";
    const trace = (differences, name, fill, symbol) => {
      const points = detail.ties.filter(([d]) => differences(d)).flatMap(([d, distances]) => distances.map(x => [x, d]));
      const furthest = Math.max(...points.map(p => p[0]));
      return {type: "scatter", mode: "markers", cliponaxis: false,
        name: `${points.length} ${name}, at most ${Number(furthest.toPrecision(3))} away`,
        x: points.map(p => p[0]), y: points.map(p => p[1]), hoverinfo: "text",
        text: points.map(p => `${p[0].toPrecision(4)} LSB from the tie<br>b − a = ${p[1]}`),
        marker: {size: 8, opacity: 0.65, color: colour(fill), symbol}};
    };
    const traces = [trace(d => d === 0, "equal", "cumulative", "circle"),
      trace(d => d !== 0, "differing", "isolated", "diamond")].filter(made => made.x.length);
    const far = Math.max(...detail.ties.flatMap(([, distances]) => distances)) || 0.5;
    const all = detail.ties.map(([d]) => d), low = Math.min(0, ...all), high = Math.max(0, ...all);
    return {traces, layout: layout({showlegend: true,
      xaxis: axis({title: "distance to the nearest tie, LSB", zeroline: true, range: [-0.03 * far, 1.05 * far]}),
      yaxis: axis({title: "b − a, LSB", range: [low - 0.4, high + 0.4], ...(high - low < 8 ? {dtick: 1} : {})})})};
  };

  const plane = detail => {
    const found = nearest(detail)?.plane;
    if (!found) return "This tensor is no feature map [N, H, W, C], so there is no map.";
    const bytes = atob(found.cells);
    const z = range(found.rows).map(i => range(found.columns).map(j =>
      (bytes.charCodeAt(i * found.columns + j) / 255) * found.top));
    const [high, wide] = found.step;
    return {traces: [{type: "heatmap", z, x0: (wide - 1) / 2, dx: wide, y0: (high - 1) / 2, dy: high, zmin: 0, zmax: found.top,
      colorscale: [[0, colour("heat-0")], [0.02, colour("heat-1")], [0.5, colour("heat-2")], [1, colour("heat-3")]],
      colorbar: {thickness: 12, ticksuffix: " %", outlinewidth: 0, tickfont: {size: 11}}, xgap: 0, ygap: 0,
      hovertemplate: "row %{y:.0f}, column %{x:.0f}<br>about %{z:.3g} %<extra></extra>"}],
      layout: layout({
        xaxis: axis({title: "column", constrain: "domain", showgrid: false, zeroline: false}),
        yaxis: axis({title: "row", autorange: "reversed", scaleanchor: "x", constrain: "domain", showgrid: false, zeroline: false})})};
  };

  const channels = detail => {
    const found = nearest(detail)?.channels;
    if (!found) return "There are no figures per channel for this tensor.";
    const x = found.shares.map((_, i) => i * found.width);
    const last = i => (found.width > 1 ? ` to ${i + found.width - 1}` : "");
    return {traces: [{type: "bar", x, y: found.shares, width: found.width, marker: {color: colour("isolated"), line: {width: 0}},
      hoverinfo: "text", hovertext: x.map((i, k) => `channel ${i}${last(i)}: ${shown(found.shares[k])}`), textposition: "none"}],
      layout: layout({bargap: 0, xaxis: axis({title: found.width > 1 ? `channel (the largest of ${found.width} each)` : "channel"}),
        yaxis: axis({title: "differing, %", rangemode: "tozero"})})};
  };

  const accumulators = () => {
    const all = data.accumulators;
    const text = all.position.map((_, i) => `<b>${plain(brief(data.names[all.position[i]]))}</b><br>${plain(all.operator[i])}<br>${
      count(all.low[i])} … ${count(all.high[i])}<br>proven |acc| ≤ ${count(all.bound[i])}`);
    const trace = (y, name, fill, symbol) => ({x: all.position, y: y.map(value => value || null), name, text,
      hoverinfo: "text", mode: "markers", marker: {size: 8, symbol, color: colour(fill)}});
    const stems = {x: [], y: [], mode: "lines", hoverinfo: "skip", showlegend: false,
      line: {color: colour("cumulative"), width: 1}};
    all.position.forEach((position, i) => {
      if (all.reached[i] && all.proven[i]) { stems.x.push(position, position, null); stems.y.push(all.reached[i], all.proven[i], null); }
    });
    const largest = Math.max(2 ** 32, ...all.proven.filter(Boolean)), smallest = Math.max(1, Math.min(2 ** 20, ...all.reached.filter(Boolean)));
    const powers = range(17).map(i => 4 * i).concat([31]).filter(e => 2 ** e >= smallest / 16 && 2 ** e <= largest * 16);
    const limit = (exponent, words) => [{type: "line", xref: "paper", x0: 0, x1: 1, y0: 2 ** exponent, y1: 2 ** exponent,
      line: {color: colour("bad"), width: 1.5, dash: "dash"}}, {xref: "paper", x: 1, xanchor: "right", y: Math.log10(2 ** exponent),
      yanchor: "bottom", showarrow: false, text: words, font: {size: 11, color: colour("muted")}}];
    const limits = [limit(24, "2<sup>24</sup>: exact in binary32"), limit(31, "2<sup>31</sup>: end of 32 bits")];
    return {traces: [stems, trace(all.reached, "largest |accumulator| that occurred", "reached", "circle"),
      trace(all.proven, "proven bound", "proven", "line-ew-open")],
      layout: layout({shapes: limits.map(l => l[0]), annotations: limits.map(l => l[1]),
        xaxis: order("tensor, in A's execution order"),
        yaxis: axis({title: "magnitude", type: "log", range: [Math.log10(smallest) - 0.4, Math.log10(largest) + 0.4],
          tickvals: powers.map(e => 2 ** e), ticktext: powers.map(e => `2<sup>${e}</sup>`)})})};
  };

  const downstream = () => {
    const all = data.downstream.filter(entry => entry.reached.length);
    if (!all.length) return "None of the differences reaches another tensor.";
    const dashes = ["solid", "dash", "dot", "dashdot"], fills = ["isolated", "reached", "proven", "cumulative"];
    const known = all.every(entry => entry.reached.every(Number.isInteger));
    const name = found => plain(brief(Number.isInteger(found) ? data.names[found] : found));
    return {traces: all.slice(0, 24).map((entry, k) => ({mode: "lines+markers", name: plain(brief(entry.tensor, narrow.matches ? 28 : 48)),
      x: known ? entry.reached : entry.reached.map((_, i) => i + 1), y: entry.shares, hoverinfo: "text",
      text: entry.reached.map((found, i) => `<b>${name(found)}</b><br>${shown(entry.shares[i])} differ<br>from ${plain(brief(entry.tensor))}`),
      line: {color: colour(fills[k % 4]), dash: dashes[Math.floor(k / 4) % 4], width: 1.5}, marker: {size: entry.shares.length > 1 ? 4 : 9}})),
      layout: layout({showlegend: all.length > 1 && all.length <= 8,
        xaxis: known ? order("tensor, in A's execution order") : axis({title: "tensors behind the difference", zeroline: false}),
        yaxis: axis({title: "differing, %", rangemode: "tozero"})})};
  };

  const kinds = {histogram, ties, plane, channels};
  const drawDetail = (where, position) => {
    const box = document.getElementById(where), detail = data.details[position];
    if (!box || !detail) return;
    box.querySelectorAll("figure").forEach(f =>
      attempt(f, () => kinds[f.dataset.chart](detail), `${f.querySelector("figcaption").textContent}: ${data.names[position]}`));
  };
  const choice = document.getElementById("choice");
  const choose = position => {
    const template = document.getElementById(`detail-${position}`);
    if (!template) return false;
    choice.value = String(position);
    document.getElementById("chosen-detail").replaceChildren(template.content.cloneNode(true));
    drawDetail("charts-chosen", position);
    return true;
  };

  const drawLayers = () => {
    const box = attempt(figure("layers"), layers, "Share of differing elements and largest difference per tensor");
    if (!box || box.dataset.clicks) return;
    box.dataset.clicks = "yes";
    box.on("plotly_click", event => {
      const position = event.points[0].x;
      const place = position === data.first ? "first" : choose(position) ? "chosen" : null;
      if (place) document.getElementById(place).scrollIntoView();
    });
  };
  const drawAll = () => {
    if (data.layers) drawLayers();
    if (data.first !== null) drawDetail("charts-first", data.first);
    if (choice) drawDetail("charts-chosen", Number(choice.value));
    if (data.accumulators) attempt(figure("accumulators"), accumulators, "Accumulators against their proven bound");
    if (data.downstream.length) attempt(figure("downstream"), downstream, "Share of differing elements downstream");
  };

  if (data.layers) {
    const shares = data.layers.differing.map((d, i) => share(d, data.layers.elements[i])).filter(Boolean);
    logarithmic.checked = Math.max(...shares) > 100 * Math.min(...shares);
    logarithmic.addEventListener("change", drawLayers);
  }
  if (choice) {
    choose(Number(choice.value));
    choice.addEventListener("change", () => choose(Number(choice.value)));
  }
  drawn(drawAll);
})();
