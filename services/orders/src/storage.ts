/** What the service asks of its database. Two implementations: `sqlite/` (embedded) and `postgres/`. */

export interface NewSupplier {
  companyName: string;
  city?: string | null;
  country: string;
}

export interface Supplier {
  id: number;
  companyName: string;
  city: string | null;
  country: string;
}

export interface NewProduct {
  name: string;
  supplierId: number;
  /** Canonical decimal with four places, e.g. `18.0000`. */
  unitPrice: string;
  unitsInStock: number;
}

export interface Product extends NewProduct {
  id: number;
}

export interface ProductSummary {
  id: number;
  name: string;
  unitPrice: string;
  unitsInStock: number;
}

export interface ProductSearch {
  /** Part of the name, in any case; empty finds all. Never a pattern. */
  name: string;
  offset: number;
  limit: number;
}

export interface OrderTotals {
  id: number;
  shipCountry: string;
  /** `YYYY-MM-DD`. */
  orderDate: string;
  /** Exact sum of unit price times quantity as a decimal string with four places; the API makes it a number. */
  totalPrice: string;
  totalQuantity: number;
  /** Count of order lines. */
  totalProducts: number;
}

/** A row of a batch, and the supplier that it names in vain. */
interface StrayRow {
  /** Its place in the batch, from 0. */
  index: number;
  supplierId: number;
}

/** Products name suppliers that do not exist. */
export class UnknownSupplierError extends Error {
  override name = "UnknownSupplierError";
  /** Every such row. None, if somebody created the suppliers just after they were missing. */
  readonly rows: StrayRow[];

  /** `existing` are those suppliers of the batch that do exist. */
  constructor(batch: readonly NewProduct[], existing: ReadonlySet<number>, options?: ErrorOptions) {
    super("Products name suppliers that do not exist.", options);
    this.rows = batch.flatMap(({ supplierId }, index) => (existing.has(supplierId) ? [] : [{ index, supplierId }]));
  }
}

/** A row cannot go because others refer to it. */
export class StillReferencedError extends Error {
  override name = "StillReferencedError";
}

/** The database does not answer, also after one reconnection; the request may be tried again later. */
export class DatabaseUnavailableError extends Error {
  override name = "DatabaseUnavailableError";
}

/** Every call is all or nothing. */
export interface Storage {
  /** One statement in one transaction; the rows come back in the order given. */
  createSuppliers(rows: NewSupplier[]): Promise<Supplier[]>;
  /** Likewise; rejects with {@link UnknownSupplierError}. */
  createProducts(rows: NewProduct[]): Promise<Product[]>;
  /** The supplier is null only if the row is missing. Undefined: no such product. */
  getProduct(id: number): Promise<{ product: Product; supplier: Supplier | null } | undefined>;
  /** `total` counts all matches, whatever offset and limit; ordered by id. */
  findProducts(search: ProductSearch): Promise<{ items: ProductSummary[]; total: number }>;
  getOrder(id: number): Promise<OrderTotals | undefined>;
  /** Changes only what is named. Undefined: no such supplier. */
  updateSupplier(id: number, changes: { city?: string | null; country?: string }): Promise<Supplier | undefined>;
  /** Removes the lines, then the order, in one transaction. False: no such order. */
  deleteOrder(id: number): Promise<boolean>;
  /** Rejects with {@link DatabaseUnavailableError} when the database does not answer. */
  check(): Promise<void>;
  close(): Promise<void>;
}
