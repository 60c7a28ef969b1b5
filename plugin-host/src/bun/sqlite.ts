/** `bun:sqlite` on Node, over `node:sqlite`. */
import { createRequire } from "node:module";

interface NodeStatement {
  all(...values: unknown[]): unknown[];
  get(...values: unknown[]): unknown;
  run(...values: unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  setReturnArrays?(enabled: boolean): void;
  setAllowUnknownNamedParameters?(enabled: boolean): void;
}

interface NodeDatabase {
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
}

interface NodeSqlite {
  DatabaseSync: new (path: string, options?: { readOnly?: boolean }) => NodeDatabase;
}

function loadSqlite(): NodeSqlite {
  const emitWarning = process.emitWarning;
  // Node 22 prints a warning that the module is experimental.
  process.emitWarning = () => {};
  try {
    return createRequire(import.meta.url)("node:sqlite") as NodeSqlite;
  } catch {
    throw new Error(`bun:sqlite needs bun or Node 22.5 and newer; this is Node ${process.versions.node}`);
  } finally {
    process.emitWarning = emitWarning;
  }
}

class Statement {
  constructor(
    private readonly statement: NodeStatement,
    private readonly sql: string,
  ) {
    statement.setAllowUnknownNamedParameters?.(true);
  }

  all(...values: unknown[]): unknown[] {
    return this.statement.all(...parameters(values)).map(plainRow);
  }

  get(...values: unknown[]): unknown {
    const row = this.statement.get(...parameters(values));
    return row === undefined ? null : plainRow(row);
  }

  run(...values: unknown[]): unknown {
    const { changes, lastInsertRowid } = this.statement.run(...parameters(values));
    return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
  }

  values(...values: unknown[]): unknown[][] {
    return this.all(...values).map((row) => Object.values(row as object) as unknown[]);
  }

  *iterate(...values: unknown[]): Generator<unknown> {
    yield* this.all(...values);
  }

  finalize(): void {}

  toString(): string {
    return this.sql;
  }
}

export class Database {
  readonly filename: string;
  readonly #database: NodeDatabase;
  readonly #cache = new Map<string, Statement>();

  constructor(filename = ":memory:", options?: number | { readonly?: boolean }) {
    const { DatabaseSync } = loadSqlite();
    this.filename = filename === "" ? ":memory:" : filename;
    const readOnly = typeof options === "object" && options.readonly === true;
    this.#database = new DatabaseSync(this.filename, { readOnly });
  }

  static open(filename?: string, options?: { readonly?: boolean }): Database {
    return new Database(filename, options);
  }

  prepare(sql: string): Statement {
    return new Statement(this.#database.prepare(sql), sql);
  }

  query(sql: string): Statement {
    const known = this.#cache.get(sql);
    if (known !== undefined) return known;
    const statement = this.prepare(sql);
    if (this.#cache.size >= 100) this.#cache.clear();
    this.#cache.set(sql, statement);
    return statement;
  }

  run(sql: string, ...values: unknown[]): unknown {
    if (values.length > 0) return this.prepare(sql).run(...values);
    this.#database.exec(sql);
    return this.prepare("select changes() as changes, last_insert_rowid() as lastInsertRowid").get();
  }

  exec(sql: string, ...values: unknown[]): unknown {
    return this.run(sql, ...values);
  }

  transaction<A extends unknown[], R>(body: (...values: A) => R): (...values: A) => R {
    const wrap =
      (begin: string) =>
      (...values: A): R => {
        this.#database.exec(begin);
        try {
          const result = body(...values);
          this.#database.exec("commit");
          return result;
        } catch (error) {
          this.#database.exec("rollback");
          throw error;
        }
      };
    return Object.assign(wrap("begin"), {
      deferred: wrap("begin deferred"),
      immediate: wrap("begin immediate"),
      exclusive: wrap("begin exclusive"),
    });
  }

  close(): void {
    this.#cache.clear();
    this.#database.close();
  }
}

export const constants = {};

function parameters(values: unknown[]): unknown[] {
  const list = values.length === 1 && Array.isArray(values[0]) ? (values[0] as unknown[]) : values;
  return list.map((value) => (typeof value === "boolean" ? Number(value) : value === undefined ? null : value));
}

/** Rows of `node:sqlite` have no prototype. */
function plainRow(row: unknown): unknown {
  return typeof row === "object" && row !== null && !Array.isArray(row) ? { ...row } : row;
}
