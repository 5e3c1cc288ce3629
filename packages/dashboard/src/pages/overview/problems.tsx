/** What fails now. */
import { useStore } from "../../data/context.ts";
import { backupProblemsOf, problemsOf } from "../../data/problems.ts";
import { TOPIC } from "../../data/store.ts";
import { useTargets } from "../../data/targets.ts";
import { count } from "../../format.ts";
import { ErrorNote, Section, Words } from "../../parts/basics.tsx";
import { StateShape } from "../../parts/state.tsx";
import { Link } from "../../router.tsx";

/** Shown at first: with more, one cause is likely behind all of them. */
const MOST_SHOWN = 20;

/** Lists what someone should look at: backups first, which nobody misses until they are needed. Absent without any. */
export function Problems() {
  const { data: targets = [], error, reload } = useTargets();
  const ofMachines = useStore(TOPIC.machines, ({ machines }) => problemsOf(machines.values()));
  const problems = [...backupProblemsOf(targets), ...ofMachines];
  if (problems.length === 0) return <ErrorNote error={error} onRetry={reload} />;
  const left = problems.length - MOST_SHOWN;
  return (
    <Section title="Failing now" aside={<span class="muted">{count(problems.length, "problem")}</span>}>
      <ErrorNote error={error} onRetry={reload} />
      <ul class="stack">
        {problems.slice(0, MOST_SHOWN).map(({ key, subject, to, level, title, detail }) => (
          <li key={key} class="problem">
            <StateShape tone="failed" color={level === "error" ? "failed" : "warm"} />
            <div>
              <p>
                <Link to={to}>{subject}</Link> <strong>{title}</strong>
              </p>
              {detail !== "" && (
                <p class="problem-detail">
                  <Words text={detail} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
      {left > 0 && <p class="muted">And {count(left, "more problem")}.</p>}
    </Section>
  );
}
