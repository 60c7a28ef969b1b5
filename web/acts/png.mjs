// Makes pictures small: PNG files with a palette of 256 colours.
import * as zlib from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLOURS = 256;

/** Returns the pixels of a PNG file with 8 bits a channel, as the browser writes them. */
function decode(file) {
  let at = SIGNATURE.length;
  let [width, height, channels] = [0, 0, 3];
  const pieces = [];
  while (at < file.length) {
    const length = file.readUInt32BE(at);
    const type = file.toString("latin1", at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + length);
    if (type === "IHDR")
      [width, height, channels] = [data.readUInt32BE(0), data.readUInt32BE(4), data[9] === 6 ? 4 : 3];
    if (type === "IDAT") pieces.push(data);
    at += length + 12;
  }
  const raw = zlib.inflateSync(Buffer.concat(pieces));
  const stride = width * channels;
  const pixels = Buffer.alloc(stride * height);
  for (let row = 0; row < height; row += 1) {
    const filter = raw[row * (stride + 1)];
    for (let column = 0; column < stride; column += 1) {
      const left = column >= channels ? pixels[row * stride + column - channels] : 0;
      const up = row > 0 ? pixels[(row - 1) * stride + column] : 0;
      const corner = row > 0 && column >= channels ? pixels[(row - 1) * stride + column - channels] : 0;
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[row * stride + column] = raw[row * (stride + 1) + 1 + column] + predicted;
    }
  }
  return { width, height, channels, pixels };
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** Returns the picture with its most frequent colours; others become the nearest of them. */
export function shrink(file) {
  const { width, height, channels, pixels } = decode(file);
  const counts = new Map();
  const colours = new Uint32Array(width * height);
  for (let at = 0; at < colours.length; at += 1) {
    // Seven bits a channel: nobody sees the difference, and the palette reaches further.
    const [red, green, blue] = [0, 1, 2].map((channel) => pixels[at * channels + channel]);
    const colour = ((red & 0xfe) << 16) | ((green & 0xfe) << 8) | (blue & 0xfe);
    colours[at] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  // Strong colours are rare, but they are what the eye looks for.
  const weight = ([colour, count]) => {
    const parts = [16, 8, 0].map((shift) => (colour >> shift) & 255);
    return count * (1 + (Math.max(...parts) - Math.min(...parts)) / 6);
  };
  const palette = [...counts]
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, COLOURS)
    .map(([colour]) => colour);
  const indexes = new Map(palette.map((colour, index) => [colour, index]));
  const nearest = (colour) => {
    let [best, distance] = [0, Infinity];
    palette.forEach((other, index) => {
      const apart = [16, 8, 0].reduce(
        (sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2,
        0,
      );
      if (apart < distance) [best, distance] = [index, apart];
    });
    return best;
  };
  const rows = Buffer.alloc((width + 1) * height);
  for (let at = 0; at < colours.length; at += 1) {
    let index = indexes.get(colours[at]);
    if (index === undefined) {
      index = nearest(colours[at]);
      indexes.set(colours[at], index);
    }
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = index;
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(palette.flatMap((colour) => [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", head),
    chunk("PLTE", table),
    chunk("IDAT", zlib.deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(checksum(body));
  return Buffer.concat([length, body, sum]);
}

/** Returns the CRC of bytes. Older versions of Node have no function for it. */
function checksum(bytes) {
  if (typeof zlib.crc32 === "function") return zlib.crc32(bytes);
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}
