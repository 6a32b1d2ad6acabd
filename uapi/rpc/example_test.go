package rpc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// A service of generated code, here grpc-go's of health, and its client: both
// are registered and called as with grpc-go.
func Example() {
	l, err := uapi.Listen("127.1.1.8:0", uapi.ListenConfig{})
	if err != nil {
		panic(err)
	}
	defer uapi.Close() // the device that Listen opened
	server := rpc.NewServer(rpc.ServerConfig{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)

	conn, err := rpc.Dial(context.Background(), l.Addr().String(), rpc.ClientConfig{})
	if err != nil {
		panic(err)
	}
	client := grpc_health_v1.NewHealthClient(conn)
	answer, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	conn.Close()
	server.GracefulStop()
	// Output: SERVING <nil>
}

// Two programs that share TCP, and no network that a connection manager
// reaches: the endpoints of each RDMA connection go over a TCP connection.
func ExampleServer_ServeOver() {
	device, err := uapi.Open("soft", uapi.OpenConfig{})
	if err != nil {
		panic(err)
	}
	defer device.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := rpc.NewServer(rpc.ServerConfig{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.ServeOver(device, l)

	connect := func(ctx context.Context, config msgring.Config) (*msgring.Conn, error) {
		channel, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		return msgring.DialOver(ctx, device, channel, config)
	}
	conn, err := rpc.Dial(context.Background(), l.Addr().String(), rpc.ClientConfig{Session: session.ClientConfig{Connect: connect}})
	if err != nil {
		panic(err)
	}
	client := grpc_health_v1.NewHealthClient(conn)
	answer, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	conn.Close()
	server.GracefulStop()
	// Output: SERVING <nil>
}
