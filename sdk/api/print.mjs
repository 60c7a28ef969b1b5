// Prints the API document for generators.
import { adjust, readDocument } from "./adjust.mjs";

process.stdout.write(JSON.stringify(adjust(readDocument())));
