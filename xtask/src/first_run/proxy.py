# A proxy that opens TLS connections with a certificate of its own and passes the requests to a model server, as companies
# do: proxy.py PORT_OF_MODEL CERTIFICATE KEY. Prints its port.
import socket, ssl, sys, threading

model, certificate, key = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


def copy(source, target):
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client):
    head = b''
    while not head.endswith(b'\r\n\r\n') and len(head) < 16384:
        byte = client.recv(1)
        if not byte:
            return
        head += byte
    if not head.startswith(b'CONNECT model.test:443 '):
        client.sendall(b'HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n')
        return client.close()
    client.sendall(b'HTTP/1.1 200 Connection established\r\n\r\n')
    try:
        opened = context.wrap_socket(client, server_side=True)
    except OSError:
        return
    server = socket.create_connection(('127.0.0.1', model))
    threading.Thread(target=copy, args=(server, opened), daemon=True).start()
    copy(opened, server)


listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
