"""Pages in a real browser, on a desktop and on a phone, in light and dark: charts are drawn, nothing sticks out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bittrue.report import html
from support import evaluations, results
from support.browser import Browser, needs_browser

pytestmark = needs_browser

DESKTOP, PHONE = (1280, 800), (390, 844)
SCREENS = list(itertools.product((DESKTOP, PHONE), (False, True)))
PAGES = {
    "benign": results.benign,
    "fault": results.fault,
    "unexplained": results.unexplained,
    "not_judged": results.not_judged,
    "equal": results.equal,
    "nothing": results.nothing,
    "real": results.real,
    "hostile": results.hostile,
    "many": lambda: results.many(400),
}
EVALUATIONS = {
    "evaluation": evaluations.evaluation,
    "many classes": lambda: evaluations.evaluation(1000, 20_000, "n{:08}, a breed of dog with a rather long name", 200),
    "hostile classes": lambda: evaluations.evaluation(40, 3000, evaluations.HOSTILE + "{}"),
    "anomalies": evaluations.anomalies,
    "baseline": evaluations.against_a_baseline,
    "boxes": evaluations.detections,
    "hostile boxes": lambda: evaluations.detections(name=evaluations.HOSTILE + "{}"),
    "masks": evaluations.masks,
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: html.render(results.plain(make())) for name, make in PAGES.items()}
    made["check"] = html.render(results.checked(results.findings()))
    made |= {name: html.render(make()) for name, make in EVALUATIONS.items()}
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


def show(browser: Browser, page: Path, size: tuple[int, int], dark: bool = False) -> None:
    browser.open(page, *size, dark=dark, phone=size == PHONE)


def pixels(path: Path) -> np.ndarray:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    with image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(np.int64)


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (PHONE, True)])
@pytest.mark.parametrize("name", [*PAGES, "check", *EVALUATIONS])
def test_page_fits_and_nothing_complains(
    browser: Browser, pages: dict[str, Path], name: str, size: tuple[int, int], dark: bool
) -> None:
    show(browser, pages[name], size, dark)
    assert browser.complaints() == []
    assert browser.requests() == [pages[name].as_uri()]
    wide, bottom = browser.evaluate(
        "[document.documentElement.scrollWidth, document.querySelector('.top').getBoundingClientRect().bottom]"
    )
    assert wide == size[0], "the page scrolls sideways"
    assert bottom <= size[1], "verdict, first divergence, sides and inputs are not on the first screen"
    light = browser.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, light[4:-1].split(","))) < 384) == dark, light


@pytest.mark.parametrize(
    ("name", "size", "dark"),
    [*(("benign", *screen) for screen in SCREENS), ("real", PHONE, False), ("hostile", DESKTOP, True)]
    + [("evaluation", *screen) for screen in SCREENS]
    + [("many classes", PHONE, True), ("hostile classes", DESKTOP, False), ("anomalies", PHONE, False)],
)
def test_charts_are_drawn_in_colours_that_stand_out(
    browser: Browser, pages: dict[str, Path], tmp_path: Path, name: str, size: tuple[int, int], dark: bool
) -> None:
    show(browser, pages[name], size, dark)
    figures = browser.evaluate(_FIGURES)
    assert figures
    image = pixels(browser.screenshot(tmp_path / "page.png", whole=True))
    colour = browser.evaluate("getComputedStyle(document.querySelector('main > section')).backgroundColor")
    background = np.array([int(value) for value in colour[4:-1].split(",")])
    drawn = 0
    for identifier, plots, sentences, (left, top, right, bottom) in figures:
        assert bool(plots) != bool(sentences), f"{identifier}: neither a chart nor a sentence, or both"
        if not plots:
            continue
        drawn += 1
        shot = image[top:bottom, left:right]
        apart = np.abs(shot - background).sum(axis=2)
        # Axes and texts alone are grey: marks have a colour. The smallest mark there is: one point of a scatter.
        coloured = (shot.max(axis=2) - shot.min(axis=2) > 60) & (apart > 120)
        assert coloured.sum() > 30, f"{identifier}: only {coloured.sum()} coloured pixels of {apart.size}"
        assert (apart > 200).sum() > 200, f"{identifier}: no texts stand out"
    assert drawn >= _DRAWN[name]


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, True), (PHONE, False)])
@pytest.mark.parametrize(("name", "sides"), [("boxes", 2), ("masks", 4)])
def test_answers_lie_on_images(
    browser: Browser, pages: dict[str, Path], tmp_path: Path, name: str, sides: int, size: tuple[int, int], dark: bool
) -> None:
    """Every side has its image, as large as it should be, and lines or colours on it."""
    show(browser, pages[name], size, dark)
    found = browser.evaluate(_PANELS)
    assert len(found) == 2 * sides + 2 * (sides - 1)
    image = pixels(browser.screenshot(tmp_path / "page.png", whole=True))
    shots = [image[top:bottom, left:right] for left, top, right, bottom in found]
    assert min(min(shot.shape[:2]) for shot in shots) >= 100
    if name == "boxes":
        for colour in ((255, 225, 77), (53, 224, 255), (255, 139, 230)):
            near = [int((np.abs(shot - np.array(colour)).sum(axis=2) < 30).sum()) for shot in shots]
            assert sum(near) > 100, colour
    else:
        same = [shot[:100, :100] for shot in shots[:sides]]
        assert all((one != two).mean() > 0.2 for one, two in itertools.pairwise(same))


_PANELS = """[...document.querySelectorAll(".panel svg")].map(panel => {
  const box = panel.getBoundingClientRect();
  return [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY].map(Math.round);
})"""


# How many charts each page has at least.
_DRAWN = {
    "benign": 11,
    "real": 3,
    "hostile": 11,
    "evaluation": 3,
    "many classes": 2,
    "hostile classes": 3,
    "anomalies": 2,
}

# Of every figure: its kind, how many plots and sentences are in it, and where the plot (or else the figure) lies.
_FIGURES = """[...document.querySelectorAll("figure")].map(figure => {
  const box = (figure.querySelector(".plot") || figure).getBoundingClientRect();
  const place = [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY].map(Math.round);
  const found = selector => figure.querySelectorAll(selector).length;
  return [figure.dataset.chart, found(".plot .main-svg"), found(".none"), place];
})"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out(browser: Browser, pages: dict[str, Path], dark: bool) -> None:
    """Contrast of every text with what lies behind it: at least 4.5, as WCAG 2.1 AA asks."""
    for name in ("benign", "fault", "equal", "check", "evaluation", "baseline", "boxes", "masks"):
        show(browser, pages[name], DESKTOP, dark)
        weak = browser.evaluate(_CONTRAST)
        assert weak == [], name


_CONTRAST = """(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = colour => colour.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, element = text.parentElement;
    if (!text.data.trim() || element.closest("script, style, noscript, template, svg, option")) continue;
    const [one, two] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (two + 0.05) < 4.5) weak.push([text.data.trim().slice(0, 40), (one + 0.05) / (two + 0.05)]);
  }
  return weak;
})()"""


def test_another_tensor_can_be_chosen(browser: Browser, pages: dict[str, Path]) -> None:
    show(browser, pages["benign"], DESKTOP)
    for position in ("3", "5"):
        browser.evaluate(
            f"(() => {{ const c = document.getElementById('choice'); c.value = '{position}';"
            "c.dispatchEvent(new Event('change')); })()"
        )
        heading = browser.evaluate("document.querySelector('#chosen-detail .heading .name').textContent")
        assert heading == f"block_{position}/conv;block_{position}/relu"
        label = browser.evaluate("document.querySelector('#charts-chosen .plot').getAttribute('aria-label')")
        assert heading in label
    # Tensor 3 is equal in isolation, so it has no ties; 5 has them.
    assert browser.evaluate("document.querySelectorAll('#charts-chosen [data-chart=ties] .none').length") == 0
    assert browser.complaints() == []


def test_table_sorts_and_filters(browser: Browser, pages: dict[str, Path]) -> None:
    show(browser, pages["benign"], DESKTOP)
    names = "[...document.querySelectorAll('#table-tensors tbody tr:not([hidden])')].map(r => r.cells[1].dataset.value)"
    in_order = browser.evaluate(names)
    assert in_order[0] == "input"
    click = (
        "[...document.querySelectorAll('#table-tensors th button')].find(b => b.textContent === 'differing').click()"
    )
    browser.evaluate(click)
    browser.evaluate(click)
    most = browser.evaluate(names)
    assert most[0] == "block_11/conv;block_11/relu"
    assert sorted(most) == sorted(in_order)
    assert browser.evaluate("document.querySelector('#table-tensors [aria-sort]').ariaSort") == "descending"
    browser.evaluate(
        "(() => { const f = document.querySelector('.filter'); f.value = 'BLOCK_1';"
        "f.dispatchEvent(new Event('input')); })()"
    )
    assert {name.partition("/")[0] for name in browser.evaluate(names)} == {"block_1", "block_10", "block_11"}
    assert browser.evaluate("document.querySelector('.shown').textContent") == "3 shown"
    browser.evaluate(
        "(() => { const f = document.querySelector('.filter'); f.value = ''; const o = document.querySelector('.only');"
        "o.checked = true; o.dispatchEvent(new Event('input')); })()"
    )
    assert browser.evaluate(names) == [name for name in most if name != "input"]


def test_colours_follow_the_system(browser: Browser, pages: dict[str, Path]) -> None:
    show(browser, pages["fault"], DESKTOP)
    colour = "getComputedStyle(document.querySelector('[data-chart=layers] .xtitle')).fill"
    light = browser.evaluate(colour)
    browser.scheme(dark=True)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    dark = browser.evaluate(colour)
    assert sum(map(int, light[4:-1].split(","))) < 200 < 500 < sum(map(int, dark[4:-1].split(",")))


def test_command_is_copied(browser: Browser, pages: dict[str, Path]) -> None:
    show(browser, pages["fault"], DESKTOP)
    browser.evaluate(
        "(() => { window.copied = []; navigator.clipboard.writeText = async text => { copied.push(text); };"
        "document.querySelector('#first .copy').click(); })()"
    )
    assert browser.evaluate("copied") == ["bittrue explain model.tflite --tensor second --element 0,3,5,2"]
    assert browser.evaluate("document.querySelector('#first .copy').textContent") == "Copied"


def test_page_can_be_printed(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    show(browser, pages["benign"], DESKTOP, dark=True)
    assert len(browser.print(tmp_path / "page.pdf").read_bytes()) > 50_000
    assert browser.complaints() == []
