package rpc_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc"
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
