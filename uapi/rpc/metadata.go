package rpc

import (
	"encoding/binary"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxMetadata bounds the encoded metadata of one message, in bytes: that of a
// request, or the headers and trailers of a reply together.
const maxMetadata = 16 << 10

const (
	contentType   = "content-type"
	contentPrefix = "application/grpc+"
)

// Metadata on the wire is two lists, headers and trailers:
//
//	u16 bytes of the headers | headers | trailers
//
// and an entry of a list, big-endian, is
//
//	u8 length | key | u16 length | value
//
// Values of keys that end in -bin are bytes; others are printable ASCII. A
// message with neither has no bytes at all.

// encodeMetadata encodes both lists. It leaves out the keys that gRPC reserves,
// as grpc-go does; among the headers it says the content type unless that is
// protobuf's. Errors: INTERNAL for a key or value that metadata may not have,
// RESOURCE_EXHAUSTED beyond maxMetadata.
func encodeMetadata(subtype string, headers, trailers metadata.MD) ([]byte, error) {
	if len(headers) == 0 && len(trailers) == 0 && subtype == "" {
		return nil, nil
	}
	b := make([]byte, 2)
	if subtype != "" {
		if err := validEntry(contentType, subtype); err != nil {
			return nil, status.Errorf(codes.Internal, "rpc: content-subtype: %v", err)
		}
		b = appendEntry(b, contentType, contentPrefix+subtype)
	}
	b, err := appendEntries(b, headers)
	if err != nil {
		return nil, err
	}
	n := len(b) - 2
	if b, err = appendEntries(b, trailers); err != nil {
		return nil, err
	}
	if len(b) > maxMetadata {
		return nil, status.Errorf(codes.ResourceExhausted, "rpc: metadata of %d bytes; the most are %d", len(b), maxMetadata)
	}
	binary.BigEndian.PutUint16(b, uint16(n))
	return b, nil
}

func appendEntries(b []byte, md metadata.MD) ([]byte, error) {
	for key, values := range md {
		if reserved(key) {
			continue
		}
		for _, value := range values {
			if err := validEntry(key, value); err != nil {
				return nil, status.Errorf(codes.Internal, "rpc: metadata: %v", err)
			}
			b = appendEntry(b, key, value)
			if len(b) > 4*maxMetadata { // the rest changes nothing
				return b, nil
			}
		}
	}
	return b, nil
}

func appendEntry(b []byte, key, value string) []byte {
	b = append(append(b, byte(len(key))), key...)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
}

// contentSubtype is what the headers of a request say of its messages.
func contentSubtype(headers metadata.MD) string {
	if v := headers[contentType]; len(v) > 0 {
		return strings.TrimPrefix(v[0], contentPrefix)
	}
	return ""
}

// parseMetadata decodes both lists; a list without entries is nil. Values are
// copies. Errors are INTERNAL: the peer breaks the format.
func parseMetadata(b []byte) (headers, trailers metadata.MD, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	if len(b) > maxMetadata {
		return nil, nil, status.Errorf(codes.Internal, "rpc: the peer's metadata has %d bytes; the most are %d", len(b), maxMetadata)
	}
	n := 0
	if len(b) >= 2 {
		n = 2 + int(binary.BigEndian.Uint16(b))
	}
	if n < 2 || n > len(b) {
		return nil, nil, status.Error(codes.Internal, "rpc: the peer's metadata is cut short")
	}
	if headers, err = parseEntries(b[2:n]); err != nil {
		return nil, nil, err
	}
	trailers, err = parseEntries(b[n:])
	return headers, trailers, err
}

func parseEntries(b []byte) (md metadata.MD, err error) {
	for len(b) > 0 {
		key, rest, ok := cut(b[1:], int(b[0]))
		if ok = ok && len(rest) >= 2; !ok {
			return nil, status.Error(codes.Internal, "rpc: an entry of the peer's metadata is cut short")
		}
		value, rest, ok := cut(rest[2:], int(binary.BigEndian.Uint16(rest)))
		if !ok {
			return nil, status.Errorf(codes.Internal, "rpc: the value of the peer's metadata %q is cut short", key)
		}
		if err := validEntry(key, value); err != nil {
			return nil, status.Errorf(codes.Internal, "rpc: the peer's metadata: %v", err)
		}
		if md == nil {
			md = metadata.MD{}
		}
		if !reserved(key) || key == contentType {
			md[key] = append(md[key], value)
		}
		b = rest
	}
	return md, nil
}

func cut(b []byte, n int) (head string, tail []byte, ok bool) {
	if n > len(b) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}

// reserved reports whether gRPC speaks for itself under a key.
func reserved(key string) bool {
	switch key {
	case "content-type", "user-agent", "te",
		"grpc-encoding", "grpc-message", "grpc-message-type", "grpc-status", "grpc-status-details-bin", "grpc-timeout":
		return true
	}
	return strings.HasPrefix(key, ":")
}

// validEntry holds a key and value to gRPC's rules.
func validEntry(key, value string) error {
	if key == "" || len(key) > 255 {
		return fmt.Errorf("a key has 1 … 255 bytes, not %d", len(key))
	}
	for i := range len(key) {
		c := key[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return fmt.Errorf("key %q has other bytes than 0-9 a-z . - and _", key)
		}
	}
	if len(value) > maxMetadata {
		return fmt.Errorf("the value of %q has %d bytes; the most are %d", key, len(value), maxMetadata)
	}
	if strings.HasSuffix(key, "-bin") {
		return nil
	}
	for i := range len(value) {
		if value[i] < 0x20 || value[i] > 0x7e {
			return fmt.Errorf("the value of %q is not printable ASCII; keys of bytes end in -bin", key)
		}
	}
	return nil
}
