/**
 * Progress of the setup, for people: on a terminal, one live line with a spinner and the elapsed time; in a pipe or a
 * log, one plain line per step. Everything goes to stderr, because stdout is for a command's result.
 */

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;
/** A step with nothing to do ends before this and is never shown. */
const QUIET_MS = 400;

/**
 * @typedef {object} Step
 * @property {(text: string) => void} detail Shows what the step is doing now (on terminals only).
 * @property {() => void} show Shows the step at once, because it is known to have work to do.
 * @property {(text: string) => void} say Prints a line that stays.
 *
 * @typedef {object} Progress
 * @property {<T>(name: string, work: (step: Step) => Promise<T>) => Promise<T>} step Runs one step. A step that takes
 *   less than 0.4 s is not shown, unless every step is.
 * @property {(text: string) => void} say Prints a line that stays.
 * @property {() => boolean} shown Whether any step had something to do.
 * @property {() => void} pause Clears the live line, so that a program can ask something on the terminal.
 */

/**
 * @param {number} total The number of steps.
 * @param {{ everyStep?: boolean, stream?: NodeJS.WriteStream }} [options] With `everyStep`, quick steps are shown, too.
 * @returns {Progress}
 */
export function createProgress(total, { everyStep = false, stream = process.stderr } = {}) {
  const live = stream.isTTY && process.env.TERM !== "dumb" && !process.env.CI;
  let number = 0;
  let anyShown = false;
  let clear = () => {};
  const say = (/** @type {string} */ text) => {
    clear();
    stream.write(`${text}\n`);
  };

  /** @type {Progress["step"]} */
  async function step(name, work) {
    number += 1;
    const title = `[${number}/${total}] ${name}`;
    const start = performance.now();
    const seconds = () => `${((performance.now() - start) / 1000).toFixed(1)} s`;
    let detail = "";
    let frame = 0;
    /** @type {NodeJS.Timeout | undefined} */
    let spinner;
    const draw = () => {
      const text = `${FRAMES[frame % FRAMES.length]} ${title}  ${seconds()}${detail && `  ${detail}`}`;
      frame += 1;
      stream.write(`\r\u001b[2K${text.slice(0, Math.max(20, (stream.columns || 80) - 1))}`);
    };
    let visible = false;
    const show = () => {
      clearTimeout(late);
      if (visible) return;
      visible = true;
      anyShown = true;
      if (!live) return void stream.write(`${title} ...\n`);
      draw();
      spinner = setInterval(draw, FRAME_MS);
      clear = () => stream.write("\r\u001b[2K");
    };
    const late = setTimeout(show, QUIET_MS);
    if (everyStep) show();
    const end = (/** @type {string} */ mark, /** @type {string} */ plain) => {
      clearTimeout(late);
      clearInterval(spinner);
      clear();
      clear = () => {};
      if (visible) stream.write(live ? `${mark} ${title}  ${seconds()}\n` : `${plain} ${seconds()}\n`);
    };
    try {
      const result = await work({
        show,
        say,
        detail: (text) => {
          // biome-ignore lint/suspicious/noControlCharactersInRegex: colors start with the escape character
          detail = text.replace(/\u001b\[[0-9;]*m|\s+/g, " ").trim();
        },
      });
      end("✓", "done in");
      return result;
    } catch (error) {
      show();
      end("✗", "failed after");
      throw error;
    }
  }

  return { step, say, shown: () => anyShown, pause: () => clear() };
}
