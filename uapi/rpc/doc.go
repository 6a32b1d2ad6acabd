// Package rpc has gRPC's interfaces on RPC sessions over RDMA: the stubs that
// protoc-gen-go-grpc generates, and the health and reflection services, run on
// it as they are. A ClientConn is a grpc.ClientConnInterface, a Server a
// grpc.ServiceRegistrar; metadata, status details, interceptors, stats handlers
// and call options are grpc-go's own types.
//
// A call is executed at most once, whatever the network does. Where the client
// cannot have the answer, FateOf says what is known of the call.
//
// It is no grpc-go: there is no HTTP/2 beneath, and so neither grpcurl nor
// another language's gRPC reaches it; no resolvers, balancers, service config,
// compression or transport security. grpc-go over uapi/rdmanet has these. Nor
// does it know rings, slots and repeats: package session does, in bytes.
//
//	conn, err := rpc.Dial(ctx, "10.0.0.2:7471", rpc.ClientConfig{})
//	client := pb.NewGreeterClient(conn)
//
//	server := rpc.NewServer(rpc.ServerConfig{})
//	pb.RegisterGreeterServer(server, greeter{})
//	err = server.Serve(listener) // of uapi.Listen
//
// How a call goes:
//
//	Invoke   options (callinfo.go), metadata, message → session → take
//	call     session → arrive (context), handler, message → session
//
// Streams go by NewStream and clientStream at one end, and by open and
// serverStream at the other.
package rpc
