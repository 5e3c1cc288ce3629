/** Reads a query of GraphQL: what is asked for, with its variables and fragments put in. Pure. */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
} from "graphql";
import { QueryError } from "./error.ts";

/** A field that is asked for. */
export interface Selection {
  name: string;
  /** What the answer calls it. */
  as: string;
  args: Record<string, unknown>;
  /** What is asked of it. Undefined if nothing is: it is a plain value. */
  fields: Selection[] | undefined;
}

export interface Operation {
  kind: string;
  fields: Selection[];
}

/**
 * Names and signs. flyctl's longest query has some 200. They also bound how deep things are in each other: with three times as many, the
 * parser finds the end of its stack.
 */
const MOST_TOKENS = 1000;
/** Fragments, which count as fields, may name each other: these end what would never end. flyctl asks for 60 fields, 6 deep. */
const MOST_FIELDS = 500;
const MOST_DEEP = 15;

/** Throws a {@link QueryError} with what is wrong. */
export function readQuery(text: string, variables: Readonly<Record<string, unknown>>): Operation {
  const { definitions } = parsed(text);
  const operations = definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
  const [operation] = operations;
  if (operation === undefined) throw new QueryError("The query asks for nothing.");
  if (operations.length > 1) throw new QueryError("Only one query is answered at a time.");
  const fragments = definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  const reader = new Reader(new Map(fragments.map((one) => [one.name.value, one])), variables);
  return { kind: operation.operation, fields: reader.selections(operation.selectionSet, 0) };
}

function parsed(text: string): DocumentNode {
  try {
    return parse(text, { noLocation: true, maxTokens: MOST_TOKENS });
  } catch (error) {
    if (error instanceof GraphQLError) throw new QueryError(`The query cannot be read. ${error.message}`);
    throw error;
  }
}

class Reader {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: Readonly<Record<string, unknown>>;
  #count = 0;

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>, variables: Readonly<Record<string, unknown>>) {
    this.#fragments = fragments;
    this.#variables = variables;
  }

  selections({ selections }: SelectionSetNode, depth: number): Selection[] {
    if (depth > MOST_DEEP) throw new QueryError(`The query is more than ${MOST_DEEP} fields deep.`);
    return selections.flatMap((selection) => {
      this.#countOne(selection);
      if (selection.kind === Kind.FIELD) return [this.#field(selection, depth)];
      if (selection.kind === Kind.INLINE_FRAGMENT) return this.selections(selection.selectionSet, depth + 1);
      const name = selection.name.value;
      const fragment = this.#fragments.get(name);
      if (fragment === undefined) throw new QueryError(`There is no fragment ${JSON.stringify(name.slice(0, 60))}.`);
      return this.selections(fragment.selectionSet, depth + 1);
    });
  }

  #field({ name, alias, arguments: given = [], selectionSet }: FieldNode, depth: number): Selection {
    // Without a prototype: names are the client's.
    const args = Object.create(null) as Record<string, unknown>;
    for (const { name: key, value } of given) args[key.value] = this.#value(value);
    const fields = selectionSet && this.selections(selectionSet, depth + 1);
    return { name: name.value, as: (alias ?? name).value, args, fields };
  }

  #value(node: ValueNode): unknown {
    return valueFromASTUntyped(node, this.#variables);
  }

  #countOne({ directives = [] }: SelectionNode): void {
    // Without it, the answer would be another.
    const [directive] = directives;
    if (directive !== undefined) throw new QueryError(`Directives are not read here: @${directive.name.value}.`);
    this.#count += 1;
    if (this.#count > MOST_FIELDS) throw new QueryError(`The query asks for more than ${MOST_FIELDS} fields.`);
  }
}
