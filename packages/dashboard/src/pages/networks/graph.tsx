/** The apps of a network as a graph: an arrow leads from an app to each that it wakes. */
import { useMemo } from "preact/hooks";
import { Scroll } from "../../parts/basics.tsx";
import { StateShape } from "../../parts/state.tsx";
import { Link } from "../../router.tsx";
import { drawingOf, NODE, type PlacedNode } from "./drawing.ts";
import { type Member, type Network, sentencesOf, shortened } from "./facts.ts";

/** Of more, nobody could follow the arrows. */
const MOST_DRAWN = 100;
/** Characters that fit into a line of a node. They are all equally wide. */
const MOST_IN_LINE = 23;
const BETWEEN = " · ";

/** Draws a network that is not too large for that. */
export function Graph({ network }: { network: Network }) {
  if (network.members.length <= MOST_DRAWN) return <Drawn network={network} />;
  return <p class="muted">A network of more than {MOST_DRAWN} apps is not drawn. The table has all of them.</p>;
}

/** Each node is a link to its app. Screen readers and the pointer find everything about it in its title. */
function Drawn({ network: { name, members } }: { network: Network }) {
  const apps = members.map(({ app }) => app);
  const wanted = members.flatMap(({ app, wakes }) => wakes.map((to) => ({ from: app, to })));
  // States change often, places hardly ever.
  const places = JSON.stringify([apps, wanted]);
  const { width, height, nodes, arrows } = useMemo(() => drawingOf(apps, wanted), [places]);
  return (
    <Scroll label={`Graph of the network ${name}`}>
      <svg class="graph" width={width} height={height} role="group" aria-label={`Who wakes whom in ${name}`}>
        <g aria-hidden="true">
          {arrows.map(({ from, to, line, head }) => (
            <g key={`${from} ${to}`} data-from={from} data-to={to}>
              <path class="graph-line" d={line} />
              <path class="graph-head" d={head} />
            </g>
          ))}
        </g>
        {nodes.map((place) => {
          const member = members.find(({ app }) => app === place.name);
          return member && <Node key={place.name} member={member} place={place} />;
        })}
      </svg>
    </Scroll>
  );
}

function Node({ member, place: { x, y } }: { member: Member; place: PlacedNode }) {
  const { app, aliases, condition } = member;
  const left = MOST_IN_LINE - condition.word.length - BETWEEN.length;
  return (
    <g transform={`translate(${x} ${y})`} class={`graph-node graph-${condition.tone}`} data-node={app}>
      <title>{sentencesOf(member)}</title>
      <Link to={{ page: "app", app }}>
        <rect class="graph-box" width={NODE.width} height={NODE.height} rx="8" />
        <text class="graph-name" x="12" y="22">
          {shortened(app, MOST_IN_LINE)}
        </text>
        <g transform="translate(12 34)">
          <StateShape tone={condition.tone} />
        </g>
        <text class="graph-words" x="30" y="44">
          {condition.word}
          {aliases.length > 0 && `${BETWEEN}${shortened(aliases.join(", "), left)}`}
        </text>
      </Link>
    </g>
  );
}
