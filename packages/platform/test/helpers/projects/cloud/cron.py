"""What is to be done now and then, beside the web server. It listens nowhere."""
import time

while True:
    time.sleep(300)
