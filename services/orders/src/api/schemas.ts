/**
 * What goes over the wire, as schemas: they check requests, type the handlers and are the
 * OpenAPI document. Named ones appear there once, under `components`.
 */
import { type Static, type TSchema, Type } from "typebox";
import { PRICE_PATTERN } from "../decimal.ts";

const closed = { additionalProperties: false } as const;

/** The largest `integer` of SQL. */
const MAX_INTEGER = 2_147_483_647;
const MAX_BATCH = 1000;
const MAX_TEXT = 200;

/** Without NUL, which PostgreSQL cannot store, and without halves of surrogate pairs, which are not valid text. */
export const TEXT_PATTERN = "^[^\\u0000\\uD800-\\uDFFF]*$";

const text = { minLength: 1, maxLength: MAX_TEXT, pattern: TEXT_PATTERN };
const Text = Type.String(text);
const NullableText = Type.Unsafe<string | null>({ type: ["string", "null"], ...text });
const Id = Type.Integer({ minimum: 1, maximum: MAX_INTEGER });
const Count = Type.Integer({ minimum: 0, maximum: MAX_INTEGER });
const NewPrice = Type.String({
  pattern: PRICE_PATTERN,
  description: "an exact decimal from 0 to 999999.9999 with up to four decimal places",
  examples: ["18.0000", "18", "0.5"],
});
const Price = Type.String({ pattern: "^[0-9]{1,6}\\.[0-9]{4}$", examples: ["18.0000"] });

/** A reference to a named schema, with the type of that schema. */
function named<T extends TSchema>(name: string, _schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${name}#` });
}

const Supplier = Type.Object(
  { id: Id, companyName: Type.String(), city: Type.Union([Type.String(), Type.Null()]), country: Type.String() },
  closed,
);
const Product = Type.Object(
  { id: Id, name: Type.String(), supplierId: Id, unitPrice: Price, unitsInStock: Type.Integer() },
  closed,
);
const ProductSummary = Type.Omit(Product, ["supplierId"], closed);
const OrderTotals = Type.Object(
  {
    id: Id,
    shipCountry: Type.String(),
    orderDate: Type.String({ format: "date" }),
    totalPrice: Type.Number({
      description: "unit price times quantity over all lines, summed exactly; the double nearest to that sum",
    }),
    totalQuantity: Type.Integer(),
    totalProducts: Type.Integer({ description: "the number of lines" }),
  },
  closed,
);
const FieldError = Type.Object(
  {
    in: Type.Unsafe<"body" | "query" | "path">({ type: "string", enum: ["body", "query", "path"] }),
    pointer: Type.String({ description: "a JSON pointer into that part; empty for the whole part" }),
    message: Type.String(),
  },
  closed,
);
const ProblemDetails = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: "stable, for programs" }),
    errors: Type.Optional(Type.Array(FieldError, { description: "all invalid fields" })),
  },
  closed,
);

/** The schemas that have a name in the document. */
export const COMPONENTS: Readonly<Record<string, TSchema>> = {
  Supplier,
  Product,
  ProductSummary,
  OrderTotals,
  Problem: ProblemDetails,
};

/** Problem details as they are sent. */
export type ProblemWire = Static<typeof ProblemDetails>;

/** Replies. */
export const SupplierReply = named("Supplier", Supplier);
export const SupplierList = Type.Array(SupplierReply);
export const ProductList = Type.Array(named("Product", Product));
export const OrderReply = named("OrderTotals", OrderTotals);
const ProductWithSupplier = Type.Object(
  { product: named("Product", Product), supplier: Type.Union([SupplierReply, Type.Null()]) },
  closed,
);
export const ProductReply = Type.Union([ProductWithSupplier, Type.Array(ProductWithSupplier, { maxItems: 1 })]);
export const ProductPage = Type.Object(
  { items: Type.Array(named("ProductSummary", ProductSummary)), total: Type.Integer() },
  closed,
);
export const Health = Type.Object({ status: Type.Literal("ok") }, closed);

/** Requests. */
export const IdParams = Type.Object({ id: Id }, closed);
export const NoQuery = Type.Object({}, closed);
export const ProductQuery = Type.Object(
  { wrap: Type.Optional(Type.Literal("array", { description: "return the reply as an array with one element" })) },
  closed,
);
export const SearchQuery = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        maxLength: MAX_TEXT,
        pattern: TEXT_PATTERN,
        description: "part of the name, in any case; no character has a special meaning",
      }),
    ),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_INTEGER, description: "default: 0" })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "default: 20" })),
  },
  closed,
);
const batch = { minItems: 1, maxItems: MAX_BATCH };
export const NewSuppliers = Type.Array(
  Type.Object({ companyName: Text, city: Type.Optional(NullableText), country: Text }, closed),
  batch,
);
export const NewProducts = Type.Array(
  Type.Object({ name: Text, supplierId: Id, unitPrice: NewPrice, unitsInStock: Count }, closed),
  batch,
);
export const SupplierChanges = Type.Object(
  { city: Type.Optional(NullableText), country: Type.Optional(Text) },
  { ...closed, minProperties: 1 },
);

/** The replies of a route: the successful one, and the problem details that every route may return. */
export function replies<const Status extends number, T extends TSchema>(status: Status, schema: T) {
  const problem = {
    description: "Problem details (RFC 9457)",
    content: { "application/problem+json": { schema: named("Problem", ProblemDetails) } },
  };
  return { [status]: schema, default: problem } as unknown as { [K in Status]: T };
}
