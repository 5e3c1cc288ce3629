"""What is to be done now and then, next to the web server. It listens nowhere."""
import time

while True:
    time.sleep(300)
