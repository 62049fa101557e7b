import stringWidth from "string-width";
import { type Paint, type TextStyle, padDisplay, truncateDisplay, visibleLine } from "./text.ts";

export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  readonly style?: (row: Row) => TextStyle | undefined;
  /** Shortened first when the terminal is too narrow. */
  readonly flexible?: boolean;
}

interface TableOptions {
  readonly paint: Paint;
  /** The terminal's width; undefined in a pipe, where nothing is shortened. */
  readonly width: number | undefined;
}

const GAP = "  ";
const FLEXIBLE_WIDTH_MIN = 8;

/** A title line, then a line for each row. Columns without any text are left out. */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  options: TableOptions,
): readonly string[] {
  const { paint } = options;
  const filled = columns
    .map((column) => ({ column, texts: rows.map((row) => visibleLine(column.text(row))) }))
    .filter(({ texts }) => texts.some((text) => text !== ""));
  const widths = columnWidths(filled, options.width);
  const line = (cell: (index: number) => string, style: (index: number) => TextStyle | undefined): string =>
    widths
      .map((width, index) => {
        const text = truncateDisplay(cell(index), width);
        const padded = index === widths.length - 1 ? text : padDisplay(text, width);
        const name = style(index);
        return name === undefined ? padded : paint(name, padded);
      })
      .join(GAP)
      .trimEnd();
  return [
    line(
      (index) => filled[index]?.column.title ?? "",
      () => "bold",
    ),
    ...rows.map((row, number) =>
      line(
        (index) => filled[index]?.texts[number] ?? "",
        (index) => filled[index]?.column.style?.(row),
      ),
    ),
  ];
}

interface FilledColumn {
  readonly column: { readonly title: string; readonly flexible?: boolean };
  readonly texts: readonly string[];
}

function columnWidths(columns: readonly FilledColumn[], available: number | undefined): readonly number[] {
  const natural = columns.map(({ column, texts }) =>
    Math.max(...[column.title, ...texts].map((text) => stringWidth(text))),
  );
  if (available === undefined) return natural;
  const widths = [...natural];
  const total = (): number => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
  while (total() > available) {
    const widest = widestFlexible(columns, widths);
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function widestFlexible(columns: readonly FilledColumn[], widths: readonly number[]): number | undefined {
  let widest: number | undefined;
  columns.forEach(({ column }, index) => {
    const width = widths[index] ?? 0;
    if (column.flexible !== true || width <= FLEXIBLE_WIDTH_MIN) return;
    if (widest === undefined || width > (widths[widest] ?? 0)) widest = index;
  });
  return widest;
}
