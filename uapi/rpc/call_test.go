package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	pb "google.golang.org/protobuf/proto"
)

// token is credentials of a call's.
type token struct {
	secure bool
	err    error
}

func (c token) GetRequestMetadata(_ context.Context, uri ...string) (map[string]string, error) {
	return map[string]string{"h-token": fmt.Sprint(uri)}, c.err
}
func (c token) RequireTransportSecurity() bool { return c.secure }

// TestOptions: options without a meaning here are refused with a text that
// names them; OnFinish is called all the same.
func TestOptions(t *testing.T) {
	conn := ours(t, ServerConfig{}, ClientConfig{})
	c := testgrpc.NewTestServiceClient(conn)
	for name, o := range map[string]struct {
		option grpc.CallOption
		code   codes.Code
		text   string
	}{
		"compressor": {grpc.UseCompressor("gzip"), codes.Unimplemented, "gzip"},
		"identity":   {grpc.UseCompressor(encoding.Identity), codes.OK, ""},
		"authority":  {grpc.CallAuthority("x"), codes.Unimplemented, "authority"},
		"subtype":    {grpc.CallContentSubtype("nothing"), codes.Unimplemented, "nothing"},
		//lint:ignore SA1019 programs may use it, and are refused
		"old codec":  {grpc.CallCustomCodec(nil), codes.Unimplemented, "CustomCodecCallOption"},
		"secure":     {grpc.PerRPCCredentials(token{secure: true}), codes.Unauthenticated, "transport security"},
		"no token":   {grpc.PerRPCCredentials(token{err: errors.New("expired")}), codes.Unauthenticated, "expired"},
		"own status": {grpc.PerRPCCredentials(token{err: status.Error(codes.Aborted, "x")}), codes.Aborted, "x"},
		"token":      {grpc.PerRPCCredentials(token{}), codes.OK, ""},
		"retry":      {grpc.MaxRetryRPCBufferSize(1), codes.OK, ""},
		"static":     {grpc.StaticMethod(), codes.OK, ""},
		"ready":      {grpc.WaitForReady(true), codes.OK, ""},
		"empty":      {grpc.EmptyCallOption{}, codes.OK, ""},
	} {
		finished := 0
		_, err := c.UnaryCall(limited(t), simple(""), o.option, grpc.OnFinish(func(error) { finished++ }))
		require.Equal(t, o.code, status.Code(err), name)
		require.Contains(t, status.Convert(err).Message(), o.text, name)
		s, err := c.StreamingOutputCall(limited(t), sizes(), o.option, grpc.OnFinish(func(error) { finished++ }))
		require.Equal(t, o.code, status.Code(err), name)
		if err == nil {
			_, err = s.Recv()
			require.Error(t, err)
		}
		require.Equal(t, 2, finished, name)
	}
	var header metadata.MD
	_, err := c.UnaryCall(limited(t), simple(""), grpc.PerRPCCredentials(token{}), grpc.Header(&header))
	require.NoError(t, err)
	require.Equal(t, []string{"[rdma://" + conn.Target() + "/grpc.testing.TestService/UnaryCall]"}, header["h-token"])
}

// TestConnectionOptions: those of the connection come before a call's.
func TestConnectionOptions(t *testing.T) {
	c := testgrpc.NewTestServiceClient(ours(t, ServerConfig{}, ClientConfig{CallOptions: []grpc.CallOption{grpc.MaxCallSendMsgSize(10)}}))
	_, err := c.UnaryCall(limited(t), simple("hello, hello"))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = c.UnaryCall(limited(t), simple("hello, hello"), grpc.MaxCallSendMsgSize(100))
	require.NoError(t, err)
}

// jsonCodec is a codec of grpc's second interface.
type jsonCodec struct{ name string }

func (c jsonCodec) Name() string { return c.name }
func (jsonCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, err := protojson.Marshal(v.(pb.Message))
	return mem.BufferSlice{mem.SliceBuffer(b[:len(b)/2]), mem.SliceBuffer(b[len(b)/2:])}, err
}
func (jsonCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return protojson.Unmarshal(data.Materialize(), v.(pb.Message))
}

// oldJSON is a codec of the first.
type oldJSON struct{ jsonCodec }

func (oldJSON) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (oldJSON) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func init() {
	encoding.RegisterCodecV2(jsonCodec{"rpctest-json"})
	encoding.RegisterCodec(oldJSON{jsonCodec{"rpctest-old"}})
}

// TestCodecs: the content subtype that a client chooses is the server's, too.
func TestCodecs(t *testing.T) {
	conn := ours(t, ServerConfig{}, ClientConfig{})
	c := testgrpc.NewTestServiceClient(conn)
	for name, option := range map[string]grpc.CallOption{
		"registered":     grpc.CallContentSubtype("rpctest-json"),
		"registered old": grpc.CallContentSubtype("rpctest-old"),
		"forced":         grpc.ForceCodecV2(jsonCodec{"rpctest-json"}),
		"forced old":     grpc.ForceCodec(oldJSON{jsonCodec{"rpctest-old"}}),
		"protobuf":       grpc.CallContentSubtype("proto"),
	} {
		r, err := c.UnaryCall(limited(t), simple("hello"), option)
		require.NoError(t, err, name)
		require.Equal(t, "you said hello", string(r.Payload.Body), name)
		s, err := c.FullDuplexCall(limited(t), option)
		require.NoError(t, err, name)
		require.NoError(t, s.Send(&testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: []byte("x")}}))
		answer, err := s.Recv()
		require.NoError(t, err, name)
		require.Equal(t, "x", string(answer.Payload.Body))
		require.NoError(t, s.CloseSend())
		_, err = s.Recv()
		require.Error(t, err)
	}
	require.Equal(t, codes.Internal, status.Code(conn.Invoke(limited(t), testgrpc.TestService_EmptyCall_FullMethodName, 7, nil)), "no message of protobuf")
	require.Equal(t, codes.Internal, status.Code(conn.Invoke(limited(t), testgrpc.TestService_EmptyCall_FullMethodName, &testgrpc.Empty{}, 7)))
}

// TestChangedMessage: a message that changes while it is sent ends the call,
// and is not sent cut short.
func TestChangedMessage(t *testing.T) {
	m := simple("hello")
	b, err := codec{}.marshal(m, defaultMaxSend)
	require.NoError(t, err)
	m.Payload.Body = make([]byte, 100)
	_, err = b.Append(nil)
	require.Error(t, err)
}
