// Makes a server listen on a free port of the loopback address, and print it. Servers of the SDK have fixed ports.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (_port, ...rest) {
  this.once("listening", () => process.stdout.write(`PORT ${this.address().port}\n`));
  return listen.call(this, 0, "127.0.0.1", ...rest.filter((one) => typeof one === "function"));
};
