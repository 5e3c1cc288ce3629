/** Whether figures meet their goals, as every bench prints it. */

/**
 * Prints a line for each goal, and returns whether all are met. A figure that is missing or not a number meets none.
 *
 * @param {Record<string, number>} figures
 * @param {Record<string, number>} goals What each figure may be at most.
 * @param {Record<string, number>} [least] What each figure must be at least.
 */
export function goalsMet(figures, goals, least = {}) {
  const print = (/** @type {boolean} */ met, /** @type {string} */ name, /** @type {string} */ goal) => {
    console.log(`${met ? "ok  " : "MISS"} ${name}: ${figures[name]} (goal: ${goal})`);
    return met;
  };
  const met = [
    ...Object.entries(goals).map(([name, most]) => print((figures[name] ?? NaN) <= most, name, `<= ${most}`)),
    ...Object.entries(least).map(([name, goal]) => print((figures[name] ?? NaN) >= goal, name, `>= ${goal}`)),
  ];
  return met.every(Boolean);
}
