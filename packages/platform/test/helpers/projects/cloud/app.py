"""A web server with a cache and MariaDB. POST / keeps a name, GET / returns all of them."""
import json
import os
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer

import pymysql

database = pymysql.connect(
    host=os.environ["MYSQL_HOST"], user="app", password="app", database="app", autocommit=True
)
cache = socket.create_connection((os.environ["REDIS_HOST"], 6379))
answers = cache.makefile("rb")


def rows(statement, *values):
    with database.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


class App(BaseHTTPRequestHandler):
    def do_GET(self):
        cache.sendall(b"INCR requests\r\n")
        requests = int(answers.readline()[1:])
        names = [name for (name,) in rows("SELECT name FROM names ORDER BY id")]
        body = json.dumps({"requests": requests, "names": names}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        name = self.rfile.read(int(self.headers["Content-Length"])).decode()
        rows("INSERT INTO names (name) VALUES (%s)", name)
        self.do_GET()


rows("CREATE TABLE IF NOT EXISTS names (id INT AUTO_INCREMENT PRIMARY KEY, name TEXT NOT NULL)")
HTTPServer(("", 80), App).serve_forever()
