/** What the service needs from its database. There are two implementations: `sqlite/` (embedded) and `postgres/`. */

export interface Supplier {
  id: number;
  companyName: string;
  city: string | null;
  country: string;
}

export type NewSupplier = Omit<Supplier, "id" | "city"> & Partial<Pick<Supplier, "city">>;

/** What of a supplier changes. */
export type SupplierChanges = Partial<Pick<Supplier, "city" | "country">>;

export interface NewProduct {
  name: string;
  supplierId: number;
  /** A canonical decimal with four decimal places, e.g. `18.0000`. */
  unitPrice: string;
  unitsInStock: number;
}

export interface Product extends NewProduct {
  id: number;
}

export type ProductSummary = Omit<Product, "supplierId">;

export interface ProductSearch {
  /** Part of the name, in any case. Empty finds everything. Not a pattern. */
  name: string;
  offset: number;
  limit: number;
}

export interface OrderTotals {
  id: number;
  shipCountry: string;
  /** `YYYY-MM-DD`. */
  orderDate: string;
  /** The exact sum of unit price times quantity, as a string with four decimal places. The API converts it to a number. */
  totalPrice: string;
  totalQuantity: number;
  /** Number of order lines. */
  totalProducts: number;
}

/** A row of a batch that refers to a supplier that does not exist. */
interface StrayRow {
  /** Index of the row in the batch. */
  index: number;
  supplierId: number;
}

/** Products refer to suppliers that do not exist. */
export class UnknownSupplierError extends Error {
  override name = "UnknownSupplierError";
  /** All such rows. Empty if the suppliers were created just after they were found missing. */
  readonly rows: StrayRow[];

  /** `existing` are the suppliers of the batch that exist. */
  constructor(batch: readonly NewProduct[], existing: ReadonlySet<number>, options?: ErrorOptions) {
    super("Products refer to suppliers that do not exist.", options);
    this.rows = batch.flatMap(({ supplierId }, index) => (existing.has(supplierId) ? [] : [{ index, supplierId }]));
  }
}

/** A row cannot be deleted because others refer to it. */
export class StillReferencedError extends Error {
  override name = "StillReferencedError";
}

/** The database does not answer, even after a reconnection. The request can be tried again later. */
export class DatabaseUnavailableError extends Error {
  override name = "DatabaseUnavailableError";
}

/** The data of the service. Every call takes effect completely or not at all. */
export interface Storage {
  /** Creates suppliers with one statement in one transaction. Returns them in the given order. */
  createSuppliers(rows: NewSupplier[]): Promise<Supplier[]>;
  /** Creates products likewise. Rejects with {@link UnknownSupplierError}. */
  createProducts(rows: NewProduct[]): Promise<Product[]>;
  /** Returns a product and its supplier, which is null if its row is missing. Undefined when there is no such product. */
  getProduct(id: number): Promise<{ product: Product; supplier: Supplier | null } | undefined>;
  /** Finds products, sorted by id. `total` counts all matches, regardless of offset and limit. */
  findProducts(search: ProductSearch): Promise<{ items: ProductSummary[]; total: number }>;
  getOrder(id: number): Promise<OrderTotals | undefined>;
  /** Changes the given fields only. Undefined when there is no such supplier. */
  updateSupplier(id: number, changes: SupplierChanges): Promise<Supplier | undefined>;
  /** Deletes an order and its lines in one transaction. False when there is no such order. */
  deleteOrder(id: number): Promise<boolean>;
  /** Rejects with {@link DatabaseUnavailableError} when the database does not answer. */
  check(): Promise<void>;
  close(): Promise<void>;
}
