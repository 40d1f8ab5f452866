/** Entry of the audit pages: the chart of calls over time, the same numbers as a table, the custom time range. */
import "./site";
import { BarController, BarElement, CategoryScale, Chart, Legend, LinearScale, Tooltip } from "chart.js";

interface ChartData {
  labels: string[];
  unit: string;
  series: { key: "ok" | "failed" | "refused"; label: string; values: number[] }[];
}

const COLOURS: Record<ChartData["series"][number]["key"], string> = {
  ok: "--color-success",
  failed: "--color-error",
  refused: "--color-warning",
};

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function fillTable(table: HTMLTableElement, data: ChartData): void {
  const head = table.createTHead().insertRow();
  for (const title of ["Time", ...data.series.map((s) => s.label)]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    head.append(cell);
  }
  const body = table.createTBody();
  data.labels.forEach((label, i) => {
    const row = body.insertRow();
    for (const text of [label, ...data.series.map((s) => String(s.values[i] ?? 0))]) {
      row.insertCell().textContent = text;
    }
  });
}

function draw(canvas: HTMLCanvasElement, data: ChartData): Chart {
  Chart.register(BarController, BarElement, CategoryScale, LinearScale, Tooltip, Legend);
  const quiet = colour("--color-base-content");
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  return new Chart(canvas, {
    type: "bar",
    data: {
      labels: data.labels,
      datasets: data.series.map((series) => ({
        label: series.label,
        data: series.values,
        backgroundColor: colour(COLOURS[series.key]),
        borderRadius: 3,
        maxBarThickness: 28,
        stack: "calls",
      })),
    },
    options: {
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: "index", intersect: false },
      plugins: {
        legend: {
          position: "bottom",
          align: "start",
          labels: { color: quiet, boxWidth: 10, boxHeight: 10, usePointStyle: true, padding: 14 },
        },
      },
      scales: {
        x: {
          stacked: true,
          grid: { display: false },
          ticks: { color: quiet, maxRotation: 0, autoSkipPadding: 16 },
        },
        y: {
          stacked: true,
          beginAtZero: true,
          border: { display: false },
          grid: { color: colour("--color-base-300") },
          ticks: { color: quiet, precision: 0, maxTicksLimit: 6 },
        },
      },
    },
  });
}

const canvas = document.querySelector<HTMLCanvasElement>("#calls-chart");
const source = document.getElementById("calls-data");
if (canvas && source) {
  const data = JSON.parse(source.textContent ?? "{}") as ChartData;
  const table = document.querySelector<HTMLTableElement>("#calls-table");
  if (table) fillTable(table, data);
  let chart = draw(canvas, data);
  const again = () => {
    chart.destroy();
    chart = draw(canvas, data);
  };
  addEventListener("trellis:theme", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

const range = document.querySelector<HTMLSelectElement>("#filter-range");
// A range of one's own is typed first and applied with the button; it does not send the form by being chosen.
range?.addEventListener("change", (event) => {
  const isCustom = range.value === "custom";
  for (const field of document.querySelectorAll<HTMLElement>("[data-custom-range]")) field.hidden = !isCustom;
  if (isCustom) event.stopPropagation();
});
