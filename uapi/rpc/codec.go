package rpc

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	pb "google.golang.org/protobuf/proto"

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// codec turns messages into bytes. The zero codec is protobuf's, which marshals
// into the session's memory; bytes of a codec of grpc's are copied there.
type codec struct {
	subtype string           // of content-type application/grpc+subtype; "" is proto
	other   encoding.CodecV2 // nil is protobuf's
}

// codecOf finds the registered codec of a content subtype, as grpc-go does.
func codecOf(subtype string) (codec, error) {
	subtype = strings.ToLower(subtype)
	if subtype == "" || subtype == proto.Name {
		return codec{}, nil
	}
	if c := encoding.GetCodecV2(subtype); c != nil {
		return codec{subtype, c}, nil
	}
	if c := encoding.GetCodec(subtype); c != nil {
		return codec{subtype, oldCodec{c}}, nil
	}
	return codec{}, status.Errorf(codes.Unimplemented, "rpc: no codec is registered for content-subtype %q; register it with encoding.RegisterCodecV2", subtype)
}

// oldCodec is a codec of grpc's first interface.
type oldCodec struct{ encoding.Codec }

func (c oldCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, err := c.Codec.Marshal(v)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (c oldCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return c.Codec.Unmarshal(data.Materialize(), v)
}

// body is a message on its way out.
type body struct {
	message pb.Message
	bytes   mem.BufferSlice // of another codec
	size    int
}

// marshal prepares a message of at most so many bytes: its size is known, its
// bytes need not be.
func (c codec) marshal(v any, most int) (b body, err error) {
	if c.other != nil {
		if b.bytes, err = c.other.Marshal(v); err != nil {
			return body{}, status.Errorf(codes.Internal, "rpc: marshal %T: %v", v, err)
		}
		b.size = b.bytes.Len()
	} else {
		if b.message = asProto(v); b.message == nil {
			return body{}, status.Errorf(codes.Internal, "rpc: marshal %T: it is no protobuf message; another codec is chosen by grpc.ForceCodecV2 or grpc.CallContentSubtype", v)
		}
		b.size = pb.Size(b.message)
	}
	if b.size > most {
		b.free()
		return body{}, tooLong("sent", b.size, most)
	}
	return b, nil
}

// Size is the message's length in bytes.
func (b *body) Size() int { return b.size }

// InPlace is the message if another codec made it in one piece.
func (b *body) InPlace() []byte {
	if b.message != nil || len(b.bytes) != 1 {
		return nil
	}
	return b.bytes[0].ReadOnlyData()
}

// Append appends the message's bytes.
func (b *body) Append(to []byte) ([]byte, error) {
	if b.message == nil {
		for _, buffer := range b.bytes {
			to = append(to, buffer.ReadOnlyData()...)
		}
		return to, nil
	}
	before := len(to)
	to, err := pb.MarshalOptions{UseCachedSize: true}.MarshalAppend(to, b.message)
	if err == nil && len(to)-before != b.size {
		err = fmt.Errorf("%T changed while it was sent", b.message)
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "rpc: marshal: %v", err)
	}
	return to, nil
}

// free gives back the memory that another codec took.
func (b *body) free() { b.bytes.Free() }

// unmarshal reads a message of at most so many bytes out of b, which m has lent
// until it returns, and tells w.
func (c codec) unmarshal(m session.Memory, b []byte, v any, most int, w *watch) error {
	if len(b) > most {
		return tooLong("received", len(b), most)
	}
	var err error
	if c.other != nil { // it may keep the bytes it is given
		data := mem.BufferSlice{buffer(m, b)}
		err = c.other.Unmarshal(data, v)
		data.Free()
	} else if m := asProto(v); m != nil {
		err = pb.Unmarshal(b, m)
	} else {
		err = fmt.Errorf("it is no protobuf message")
	}
	if err != nil {
		return status.Errorf(codes.Internal, "rpc: unmarshal %T: %v", v, err)
	}
	w.inPayload(v, len(b))
	return nil
}

// asProto is v as a message of protobuf, nil if it is none.
func asProto(v any) pb.Message {
	switch m := v.(type) {
	case pb.Message:
		return m
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m)
	}
	return nil
}
