package wire_test

import (
	"bytes"
	"testing"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// FuzzRecord parses any bytes as a record and its frames. A frame that is read
// must come back the same when it is written and read again, and no frame
// reaches beyond its record.
func FuzzRecord(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.record)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		rest, n, err := wire.ParseRecord(b, wire.DefaultMaxRecord)
		if err != nil || n == 0 {
			if err != nil && err != wire.ErrRecordEmpty && err != wire.ErrRecordSize || n != 0 {
				t.Fatal(n, err)
			}
			rest = b
		}
		for len(rest) > 0 {
			var x, y wire.Frame
			n, err := x.Parse(rest)
			if err != nil {
				if _, ok := err.(*wire.Error); !ok {
					t.Fatalf("error %v is not one of the package's", err)
				}
				break
			}
			if n <= 0 || n > len(rest) {
				t.Fatalf("%d bytes of %d", n, len(rest))
			}
			out := x.Append(dirty(n))
			if len(out) > n || len(out) != x.Length() {
				t.Fatalf("%d bytes in, %d out, Length %d", n, len(out), x.Length())
			}
			if k, err := y.Parse(out); err != nil || k != len(out) {
				t.Fatalf("%v: %d of %d bytes, %v", &x, k, len(out), err)
			}
			if x.String() != y.String() || !bytes.Equal(x.Data, y.Data) || !bytes.Equal(out, y.Append(nil)) {
				t.Fatalf("%v became %v", &x, &y)
			}
			rest = rest[n:]
		}
		if !bytes.Equal(b, before) {
			t.Fatal("Parse changed its input")
		}
	})
}

// FuzzParameters parses any bytes as parameters; accepted ones must come back
// the same when they are written and read again.
func FuzzParameters(f *testing.F) {
	for _, g := range goldens(f) {
		if x := parse(f, g.body)[0]; x.Type.IsParameters() {
			f.Add(x.Data)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q wire.Parameters
		if err := p.Parse(b); err != nil {
			if e, ok := err.(*wire.Error); !ok || e.Code != wire.TransportParameterError {
				t.Fatal(err)
			}
			return
		}
		if err := q.Parse(p.Append(nil)); err != nil || p != q {
			t.Fatalf("%+v became %+v, %v", p, q, err)
		}
	})
}
