FROM debian:12
WORKDIR /opt/foretoken
COPY . .
RUN ./setup.sh && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["/opt/foretoken/build/foretoken"]
CMD ["demo"]
