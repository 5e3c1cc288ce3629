/** Schemas of fields that hold one value, made from their descriptions. */
import { type TOptional, type TUnsafe, Type } from "typebox";
import { type Field, type Fields, lastName, type ValueOf } from "./fields.ts";

/** The fields right below a path, by their last names. */
type SchemasBelow<F extends Fields, Path extends string> = {
  -readonly [Each in keyof F as NameBelow<Each & string, Path>]: TOptional<TUnsafe<ValueOf<F[Each]>>>;
};
type NameBelow<Each extends string, Path extends string> = Each extends `${infer Before}.${infer Name}`
  ? Before extends Path
    ? Name
    : never
  : "" extends Path
    ? Each
    : never;

/**
 * Optional properties for the fields of a part of the configuration, or for those that are in no part.
 *
 * @example
 * Type.Object({ image: Type.String(), ...schemasOf(MACHINE_FIELDS, "") });
 */
export function schemasOf<const F extends Fields, const Path extends string>(
  fields: F,
  part: Path,
): SchemasBelow<F, Path> {
  const below = Object.entries(fields).filter(([path]) => path.slice(0, -lastName(path).length - 1) === part);
  return Object.fromEntries(
    below.map(([path, field]) => [lastName(path), Type.Optional(schemaOf(field))]),
  ) as unknown as SchemasBelow<F, Path>;
}

function schemaOf(field: Field) {
  const unit = field.kind === "seconds" ? " Seconds." : "";
  const described = { description: `${field.description}${unit} Default: ${field.default}.` };
  switch (field.kind) {
    case "boolean":
      return Type.Boolean(described);
    case "choice":
      return Type.Union(
        field.choices.map((choice) => Type.Literal(choice)),
        described,
      );
    case "text":
      return Type.String({ pattern: field.pattern, ...described });
    default:
      return Type.Integer({ minimum: field.minimum, maximum: field.maximum, ...described });
  }
}
