// Package samplepb is the protobuf messages and gRPC stubs of the sample
// program counter, generated from samplepb.proto. It has no code of its own,
// and no program but the sample needs it. The stubs run on grpc-go and on
// uapi/rpc alike: client → stub → connection, and connection → service.
//
// Generating needs protoc 3.21 or later; the plugins are fetched at the
// versions that are named here. Later ones of protoc-gen-go use unsafe.
package samplepb

//go:generate sh -c "GOBIN=$(go env GOCACHE)/samplepb go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.3 && GOBIN=$(go env GOCACHE)/samplepb go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0 && PATH=$(go env GOCACHE)/samplepb:$PATH protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative samplepb.proto"
