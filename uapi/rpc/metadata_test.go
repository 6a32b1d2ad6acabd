package rpc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestMetadataBytes(t *testing.T) {
	b, err := encodeMetadata("json", metadata.MD{"a-bin": {"\x00"}, "grpc-timeout": {"1S"}, ":path": {"/"}}, metadata.MD{"t": {"x", ""}})
	require.NoError(t, err)
	require.Equal(t, "\x00\x2d\x0ccontent-type\x00\x15application/grpc+json"+"\x05a-bin\x00\x01\x00"+
		"\x01t\x00\x01x"+"\x01t\x00\x00", string(b))
	headers, trailers, err := parseMetadata(b)
	require.NoError(t, err)
	require.Equal(t, metadata.MD{"a-bin": {"\x00"}, "content-type": {"application/grpc+json"}}, headers)
	require.Equal(t, metadata.MD{"t": {"x", ""}}, trailers)
	require.Equal(t, "json", contentSubtype(headers))

	ends := map[int]bool{0: true, 47: true, 52: true} // of entries
	for n := range b {
		_, _, err := parseMetadata(b[:n])
		require.Equal(t, ends[n], err == nil, "%d bytes", n)
	}
	none, err := encodeMetadata("", nil, metadata.MD{})
	require.NoError(t, err)
	require.Empty(t, none, "no metadata costs no bytes")
}

func TestMetadataRefused(t *testing.T) {
	for name, c := range map[string]struct {
		md   metadata.MD
		code codes.Code
	}{
		"empty key":       {metadata.MD{"": {"a"}}, codes.Internal},
		"long key":        {metadata.MD{strings.Repeat("k", 256): {"a"}}, codes.Internal},
		"upper-case key":  {metadata.MD{"Key": {"a"}}, codes.Internal},
		"value of bytes":  {metadata.MD{"key": {"\x7f"}}, codes.Internal},
		"long value":      {metadata.MD{"key": {strings.Repeat("v", maxMetadata+1)}}, codes.Internal},
		"long together":   {metadata.MD{"key": {strings.Repeat("v", maxMetadata/2), strings.Repeat("v", maxMetadata/2)}}, codes.ResourceExhausted},
		"very many bytes": {metadata.MD{"key": strings.Split(strings.Repeat("v ", 100000), " ")}, codes.ResourceExhausted},
	} {
		_, err := encodeMetadata("", nil, c.md)
		require.Equal(t, c.code, status.Code(err), name)
	}
	_, err := encodeMetadata("\n", nil, nil)
	require.Error(t, err)
	_, _, err = parseMetadata(make([]byte, maxMetadata+1))
	require.Error(t, err)
	for _, b := range []string{"\x00", "\x00\x01", "\x00\x04\x01K\x00\x00", "\x00\x05\x01k\x00\x01\n", "\x00\x03\x00\x00\x00", "\x00\x00\x01k\x00\x02v"} {
		_, _, err := parseMetadata([]byte(b))
		require.Equal(t, codes.Internal, status.Code(err), "%q", b)
	}
}

// FuzzMetadata: metadata that parses is encoded to bytes that parse to the
// same.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte("\x00\x05\x01h\x00\x01a\x05t-bin\x00\x01\xff"))
	f.Add([]byte("\x00\x08\x01h\x00\x01a\x01h\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		headers, trailers, err := parseMetadata(bytes.Clone(b))
		if err != nil {
			require.Equal(t, codes.Internal, status.Code(err))
			return
		}
		subtype := contentSubtype(headers)
		again, err := encodeMetadata(subtype, headers, trailers)
		if subtype != "" && err != nil {
			return // the prefix makes it longer
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(again), len(b)+2+2*len(contentPrefix))
		delete(headers, contentType)
		delete(trailers, contentType)
		h, tr, err := parseMetadata(again)
		if len(again) > maxMetadata {
			return
		}
		require.NoError(t, err)
		delete(h, contentType)
		require.Equal(t, len(headers), len(h))
		for key, values := range headers {
			require.Equal(t, values, h[key])
		}
		require.Equal(t, len(trailers), len(tr))
		for key, values := range trailers {
			require.Equal(t, values, tr[key])
		}
	})
}
