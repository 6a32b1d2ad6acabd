package rdmanet_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// An HTTP server and a client, over RDMA instead of TCP.
func Example() {
	defer uapi.Close() // the device that Listen opened
	l, err := rdmanet.Listen("127.1.1.1:0", rdmanet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.URL.Query().Get("name"))
	})}
	go server.Serve(l)

	var dialer rdmanet.Dialer
	transport := &http.Transport{DialContext: dialer.DialContext}
	client := &http.Client{Transport: transport}
	response, err := client.Get("http://" + l.Addr().String() + "/?name=RDMA")
	if err != nil {
		log.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	fmt.Printf("%s, %s\n", body, l.Addr().Network())

	transport.CloseIdleConnections()
	server.Shutdown(context.Background())
	rdmanet.Flush(context.Background()) // before the program ends
	// Output: hello, RDMA, rdma
}

// A server that echoes, and a client.
func ExampleDial() {
	defer uapi.Close() // the device that Listen opened
	l, err := rdmanet.Listen("127.1.1.1:0", rdmanet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(c, c) // until CloseWrite
		c.Close()
	}()

	ctx := context.Background()
	c, err := rdmanet.Dial(ctx, l.Addr().String(), rdmanet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(c, "hello, peer")
	c.CloseWrite()
	echo, err := io.ReadAll(c)
	fmt.Println(string(echo), err)
	c.Close()
	rdmanet.Flush(ctx)
	// Output: hello, peer <nil>
}

// A server on a device that the program opened, and a client on another one:
// here of a network in the process that loses packets.
func ExampleListenOn() {
	server, err := uapi.Open("sim?net=greetings&loss=1%", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := uapi.Open("sim?net=greetings&loss=1%", uapi.OpenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	l, err := rdmanet.ListenOn(server, ":7000", rdmanet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		name, _ := io.ReadAll(c) // until CloseWrite
		fmt.Fprintf(c, "hello, %s", name)
		c.Close()
	}()

	device, err := server.QueryDevice()
	if err != nil {
		log.Fatal(err)
	}
	dialer := rdmanet.Dialer{Device: client}
	c, err := dialer.Dial("rdma", device.Address.Addr().String()+":7000")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "RDMA")
	c.(*rdmanet.Conn).CloseWrite()
	greeting, err := io.ReadAll(c)
	fmt.Println(string(greeting), err)
	// Output: hello, RDMA <nil>
}
