/** Entry of the audit pages: charts, the same numbers as tables, the custom time range. */
import "./site";
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  type ChartDataset,
  Legend,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip,
} from "chart.js";
import { startLive } from "./audit/live";
import { startSearchOfPage } from "./audit/search";
import { axisLabels, type TimeAxis, whole } from "./formats";
import t from "./texts/pages";

interface ChartData extends TimeAxis {
  series: { key: string; label: string; values: (number | null)[] }[];
}

const OUTCOMES: Record<string, string> = {
  ok: "var(--color-success)",
  failed: "var(--color-error)",
  cancelled: "var(--quiet)",
  refused: "var(--color-warning)",
};
/** How many colours the theme has for series. */
const SERIES = 8;

/** A colour as the theme has it now; a canvas knows neither variables nor light-dark(). */
function colour(css: string): string {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = css;
  probe.style.setProperty("forced-color-adjust", "none"); // series are told apart by nothing else
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function seriesColour(key: string, index: number): string {
  return colour(OUTCOMES[key] ?? `var(--series-${index % SERIES})`);
}

const written = (value: number | null | undefined): string => (value == null ? t.unknownValue : whole(value));

function fillTable(table: HTMLTableElement, data: ChartData): void {
  const head = table.createTHead().insertRow();
  for (const title of [t.time, ...data.series.map((s) => s.label)]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    head.append(cell);
  }
  const body = table.createTBody();
  data.labels.forEach((label, i) => {
    const row = body.insertRow();
    for (const text of [label, ...data.series.map((s) => written(s.values[i]))]) {
      row.insertCell().textContent = text;
    }
  });
}

/** How Chart.js draws one series. Where nothing was counted, a line ends and begins anew. */
export function dataset(
  series: ChartData["series"][number],
  index: number,
  isLine: boolean,
): ChartDataset<"bar" | "line"> {
  const tint = seriesColour(series.key, index);
  const shared = { label: series.label, data: series.values as number[], backgroundColor: tint };
  if (!isLine) return { ...shared, borderRadius: 3, maxBarThickness: 28, stack: "calls" };
  return {
    ...shared,
    borderColor: tint,
    borderWidth: 2,
    borderDash: [[], [6, 3], [2, 3]][index % 3],
    pointRadius: 2,
    spanGaps: false,
  };
}

function draw(canvas: HTMLCanvasElement, data: ChartData): Chart {
  Chart.register(
    BarController,
    BarElement,
    LineController,
    LineElement,
    PointElement,
    CategoryScale,
    LinearScale,
    Tooltip,
    Legend,
  );
  const isLine = canvas.dataset.kind === "lines";
  const quiet = colour("var(--color-base-content)");
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  return new Chart(canvas, {
    type: isLine ? "line" : "bar",
    data: { labels: data.labels, datasets: data.series.map((series, i) => dataset(series, i, isLine)) },
    options: {
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: "index", intersect: false },
      plugins: {
        tooltip: {
          callbacks: {
            label: ({ dataset: { label }, parsed }) => `${label}: ${written(parsed.y)}`,
          },
        },
        legend: {
          position: "bottom",
          align: "start",
          labels: { color: quiet, boxWidth: 10, boxHeight: 10, usePointStyle: true, padding: 14 },
        },
      },
      scales: {
        x: {
          stacked: !isLine,
          grid: { display: false },
          ticks: { color: quiet, maxRotation: 0, autoSkipPadding: 16 },
        },
        y: {
          stacked: !isLine,
          beginAtZero: true,
          border: { display: false },
          grid: { color: colour("var(--color-base-300)") },
          ticks: {
            color: quiet,
            precision: 0,
            maxTicksLimit: 6,
            callback: (value) => whole(Number(value)),
          },
        },
      },
    },
  });
}

interface Drawn {
  canvas: HTMLCanvasElement;
  data: ChartData;
  chart: Chart;
}
const drawn = new Map<string, Drawn>();

/** Draw the charts of a part of the page, and fill their tables. */
function drawCharts(root: ParentNode): void {
  for (const canvas of root.querySelectorAll<HTMLCanvasElement>("canvas[data-chart]")) {
    const name = canvas.dataset.chart ?? "";
    const source = document.getElementById(name);
    if (!source) continue;
    const given = JSON.parse(source.textContent ?? "{}") as ChartData;
    const data = { ...given, labels: axisLabels(given) };
    const table = document.querySelector<HTMLTableElement>(`[data-chart-table="${name}"]`);
    if (table) fillTable(table, data);
    drawn.get(name)?.chart.destroy();
    drawn.set(name, { canvas, data, chart: draw(canvas, data) });
  }
}

drawCharts(document);

function redraw(): void {
  for (const one of drawn.values()) {
    one.chart.destroy();
    one.chart = draw(one.canvas, one.data);
  }
}
addEventListener("trellis:theme", redraw);

// A canvas keeps the colours that it was drawn in, and paper is light.
addEventListener("beforeprint", () => {
  const { dataset } = document.documentElement;
  const before = dataset.theme;
  dataset.theme = "light";
  redraw();
  const afterwards = (): void => {
    if (before === undefined) delete dataset.theme;
    else dataset.theme = before;
    redraw();
  };
  addEventListener("afterprint", afterwards, { once: true });
});

const range = document.querySelector<HTMLSelectElement>("#filter-range");
// A range of one's own is typed first and applied with the button; it does not send the form by being chosen.
range?.addEventListener("change", (event) => {
  const isCustom = range.value === "custom";
  for (const field of document.querySelectorAll<HTMLElement>("[data-custom-range]")) field.hidden = !isCustom;
  if (isCustom) event.stopPropagation();
});

startSearchOfPage();

const live = document.querySelector<HTMLButtonElement>("[data-live]");
const list = document.getElementById("entries");
// An older page stands still: new rows belong to the first one.
const isFirstPage = !/[?&](before|after)=/.test(location.search);
if (live && list && isFirstPage) startLive(live, list, drawCharts);
