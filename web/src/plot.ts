// A chart in a figure: title, export, and its numbers as a table for those who cannot or would not see it.
import { BarChart, LineChart, ScatterChart } from 'echarts/charts';
import { DataZoomInsideComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import type { EChartsCoreOption, EChartsType } from 'echarts/core';
import { LabelLayout } from 'echarts/features';
import { SVGRenderer } from 'echarts/renderers';
import { download, fill, h, table, type Column } from './dom';

echarts.use([BarChart, LineChart, ScatterChart, DataZoomInsideComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, LabelLayout, SVGRenderer]);

export interface Colours { ink: string; muted: string; line: string; surface: string; accent: string; bad: string; series: string[] }

// Apart for most kinds of colour blindness (after Okabe and Ito), darkened or lightened to stand out.
const seriesColours = {
  light: ['#1f6fb5', '#c4561b', '#17806d', '#8a4f9e', '#94700a', '#5d6670', '#b23a5e', '#3f8fa8'],
  dark: ['#6fb3f2', '#f0935b', '#56c7b0', '#c79be0', '#dcb94f', '#a8b0b9', '#f08aa8', '#7fd0e6'],
};

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const dark = document.documentElement.dataset.theme === 'dark';
  return { ink: of('ink'), muted: of('muted'), line: of('line'), surface: of('surface'), accent: of('accent'), bad: of('bad'),
    series: dark ? seriesColours.dark : seriesColours.light };
}

export interface PlotContent {
  option: (colours: Colours) => EChartsCoreOption;
  summary: string;  // what one sees
  warning?: string;  // what must not be overlooked
  note?: string;  // what one may want to act on
  columns: Column[];
  rows: string[][];
  // What to say about a point that was clicked, by its name; '' = nothing.
  clicked?: (name: string) => string;
  zooms?: boolean;  // along its x axis
}

interface LivePlot { chart: EChartsType; content: PlotContent; box: HTMLElement; shown: [start: number, end: number] }
const live = new Set<LivePlot>();

function draw(plot: LivePlot): void {
  const theme = colours();
  const common: EChartsCoreOption = {
    color: theme.series, animationDuration: 250, backgroundColor: 'transparent',
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: theme.ink },
    tooltip: { backgroundColor: theme.surface, borderColor: theme.line, textStyle: { color: theme.ink }, confine: true },
    legend: { textStyle: { color: theme.muted }, top: 0, right: 0, icon: 'roundRect', itemWidth: 12, itemHeight: 8 },
  };
  const option = plot.content.option(theme) as Record<string, unknown>;
  const merged: Record<string, unknown> = { ...common, ...option };
  for (const key of ['tooltip', 'legend'] as const) {
    merged[key] = option[key] === undefined && key === 'legend' ? undefined : { ...(common[key] as object), ...(option[key] as object | undefined) };
  }
  // The wheel alone scrolls the page; what lies outside still carries lines into the part that is shown.
  if (plot.content.zooms) {
    const [start, end] = plot.shown;
    merged.dataZoom = [{ type: 'inside', start, end, filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false, preventDefaultMouseMove: false, minSpan: 0.5 }];
  }
  plot.chart.setOption(merged, { notMerge: true });
}

// Axes in the page's colours; `rest` overrides.
export function axis(theme: Colours, name: string, rest: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name, nameTextStyle: { color: theme.muted, fontSize: 11, ...(rest.nameLocation ? {} : { align: 'left' }) }, axisLabel: { color: theme.muted, fontSize: 11 },
    axisLine: { lineStyle: { color: theme.line } }, axisTick: { lineStyle: { color: theme.line } },
    splitLine: { lineStyle: { color: theme.line, opacity: 0.6 } }, ...rest,
  };
}
export const below = { nameLocation: 'middle', nameGap: 26 };
export const room = { left: 12, right: 18, top: 42, bottom: 30, containLabel: true };

const mostFrames = 120;  // an answer that nobody waits for any more is never in the document

export class Plot {
  readonly element: HTMLElement;
  private readonly box: HTMLElement;
  private readonly numbers = h('details');
  private readonly warning = h('p', { class: 'missed', hidden: true });
  private readonly note = h('p', { class: 'muted', hidden: true });
  private plot: LivePlot | undefined;
  private waited = 0;  // frames, for the document
  zoomed?: (start: number, end: number) => void;  // by the reader; percent of the axis

  constructor(readonly title: string, size: '' | 'tall' | 'flat' = '', wide = false) {
    this.box = h('div', { class: `plot ${size}`, role: 'img', 'aria-label': title });
    this.element = h('figure', { class: wide ? 'card wide' : 'card' },
      h('figcaption', {}, h('h2', {}, title),
        h('button', { type: 'button', class: 'small', 'aria-label': `Save ${title} as SVG`, onclick: () => this.save() }, 'SVG')),
      this.warning, this.box, this.note, this.numbers);
  }

  // Charts need their size, which they have once they are in the document.
  show(content: PlotContent): void {
    if (!this.box.isConnected) {
      if (++this.waited < mostFrames) requestAnimationFrame(() => this.show(content));
      return;
    }
    if (!this.plot) {
      this.plot = { chart: echarts.init(this.box, undefined, { renderer: 'svg' }), content, box: this.box, shown: [0, 100] };
      live.add(this.plot);
      this.plot.chart.on('datazoom', (event: unknown) => {
        const { start, end } = ((event as { batch?: unknown[] }).batch?.[0] ?? event) as { start?: number; end?: number };
        if (start === undefined || end === undefined || !this.plot || (start === this.plot.shown[0] && end === this.plot.shown[1])) return;
        this.plot.shown = [start, end];
        this.zoomed?.(start, end);
      });
      this.plot.chart.on('click', (item: { data?: unknown }) => {
        const text = this.plot?.content.clicked?.(String((item.data as { name?: string } | undefined)?.name ?? '')) ?? '';
        if (text === '') return;
        fill(this.note, h('code', {}, text));
        this.note.hidden = false;
      });
    }
    this.plot.content = content;
    this.box.setAttribute('aria-label', `${this.title}: ${content.summary}`);
    this.warning.textContent = content.warning ?? '';
    this.warning.hidden = !content.warning;
    this.note.textContent = content.note ?? '';
    this.note.hidden = !content.note;
    draw(this.plot);
    fill(this.numbers, h('summary', {}, 'Numbers'), table(`${this.title}, numbers`, content.columns, content.rows));
  }

  zoomTo(start: number, end: number): void {
    if (!this.plot) return;
    this.plot.shown = [start, end];
    this.plot.chart.dispatchAction({ type: 'dataZoom', start, end });
  }

  private save(): void {
    if (!this.plot) return;
    const svg = this.plot.chart.renderToSVGString();
    download(`${this.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.svg`, 'image/svg+xml', svg);
  }
}

export function redrawAll(): void {
  for (const plot of live) {
    if (plot.box.isConnected) {
      plot.chart.resize();
      draw(plot);
    } else {
      plot.chart.dispose();
      live.delete(plot);
    }
  }
}

let waiting = 0;
window.addEventListener('resize', () => {
  clearTimeout(waiting);
  waiting = window.setTimeout(redrawAll, 120);
});
