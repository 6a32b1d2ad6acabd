package abi

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// layout is the output of testdata/layout.c.
type layout struct {
	size  map[string]int                  // by C structure
	field map[string]map[string]fieldSpan // by C structure and C field
	value map[string]uint64
}

type fieldSpan struct{ off, size int }

func parseLayout(t testing.TB, text []byte) layout {
	l := layout{map[string]int{}, map[string]map[string]fieldSpan{}, map[string]uint64{}}
	num := func(s string) int {
		return must.Get(strconv.Atoi(s))(t)
	}
	sc := bufio.NewScanner(bytes.NewReader(text))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		switch {
		case len(f) == 3 && f[0] == "struct":
			l.size[f[1]] = num(f[2])
			l.field[f[1]] = map[string]fieldSpan{}
		case len(f) == 5 && f[0] == "field":
			l.field[f[1]][f[2]] = fieldSpan{num(f[3]), num(f[4])}
		case len(f) == 3 && f[0] == "value":
			v := must.Get(strconv.ParseUint(f[2], 10, 64))(t)
			l.value[f[1]] = v
		default:
			t.Fatalf("layout: cannot read %q", sc.Text())
		}
	}
	require.NotEmpty(t, l.size)
	return l
}

// golden is what was recorded, all of it or of one program.
func golden(t testing.TB, programs ...string) layout {
	if programs == nil {
		programs = []string{"layout", "ucm"}
	}
	var all []byte
	for _, p := range programs {
		text := must.Get(os.ReadFile("testdata/" + p + ".golden"))(t)
		all = append(all, text...)
	}
	return parseLayout(t, all)
}

// cStruct is a fixed structure: Go value, C name, declared size.
type cStruct struct {
	v    Struct
	c    string
	size int
}

// plain reduces a Go or C field name to what both have in common.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// fill gives every byte of a field its own non-zero value and returns those
// bytes as they must lie in memory.
func fill(v reflect.Value, next *byte, bigEndian bool) []byte {
	var mem []byte
	take := func() byte {
		*next++
		if *next == 0 {
			*next = 1
		}
		mem = append(mem, *next)
		return *next
	}
	integer := func(n int) uint64 {
		var x uint64
		for i := range n {
			b := uint64(take())
			if bigEndian {
				x = x<<8 | b
			} else {
				x |= b << (8 * i)
			}
		}
		return x
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next, bigEndian)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(take()))
		}
	case reflect.Int32, reflect.Int64:
		x := integer(int(v.Type().Size()))
		v.SetInt(int64(x) << (64 - v.Type().Bits()) >> (64 - v.Type().Bits()))
	default:
		v.SetUint(integer(int(v.Type().Size())))
	}
	return mem
}

func TestStructsLieAsInC(t *testing.T) {
	l := golden(t)
	for _, s := range structs {
		t.Run(s.c, func(t *testing.T) {
			require.Equal(t, l.size[s.c], s.size)
			fields := l.field[s.c]
			require.NotEmpty(t, fields)
			v := reflect.ValueOf(s.v).Elem()
			v.SetZero()
			seen := map[string]bool{}
			for i := range v.NumField() {
				name := plain(v.Type().Field(i).Name)
				for c, span := range fields {
					if plain(c) != name && !(c == "cmd_hdr_reserved" && name == "reserved") {
						continue
					}
					seen[c] = true
					require.Equal(t, c, v.Type().Field(i).Tag.Get("c"))
					checkField(t, s.v, v.Field(i), c, span, s.size)
				}
			}
			for c := range fields {
				if !strings.HasPrefix(c, "reserved") && !strings.HasPrefix(c, "driver_data") && !seen[c] {
					t.Errorf("no Go field for %s.%s", s.c, c)
				}
			}
			require.LessOrEqual(t, v.NumField(), len(fields), "a Go field has no C field")
			require.Len(t, seen, v.NumField(), "a Go field has no C field")
		})
	}
}

// checkField sets one field alone and looks where its bytes come out.
func checkField(t *testing.T, s Struct, f reflect.Value, c string, span fieldSpan, size int) {
	var next byte = 0x10
	var want []byte
	if f.Kind() == reflect.Struct {
		want = make([]byte, span.size)
		for i := range f.NumField() {
			fill(f.Field(i), &next, false)
		}
		f.Addr().Interface().(Struct).Put(want)
	} else {
		want = fill(f, &next, strings.HasSuffix(c, "_guid"))
	}
	require.Len(t, want, span.size, c)
	got := bytes.Repeat([]byte{0xa5}, size+4)
	s.Put(got)
	exp := make([]byte, size)
	copy(exp[span.off:], want)
	require.Equal(t, exp, got[:size], c)
	require.Equal(t, bytes.Repeat([]byte{0xa5}, 4), got[size:], "%s: wrote beyond the structure", c)

	back := reflect.New(reflect.TypeOf(s).Elem())
	require.NoError(t, back.Interface().(Struct).Parse(got[:size]))
	require.Equal(t, s, back.Interface(), c)
	f.SetZero()
}

func TestParseRefusesEveryShorterPrefix(t *testing.T) {
	require.ErrorIs(t, ErrShort, syscall.EINVAL)
	for _, s := range structs {
		b := bytes.Repeat([]byte{0xff}, s.size)
		for n := range s.size {
			v := reflect.New(reflect.TypeOf(s.v).Elem())
			require.ErrorIs(t, v.Interface().(Struct).Parse(b[:n]), ErrShort, "%s[:%d]", s.c, n)
			require.True(t, v.Elem().IsZero(), "%s[:%d]: changed", s.c, n)
		}
	}
}

// TestLayoutFromHeaders makes the golden files anew where it can, so that a
// change of the headers shows.
func TestLayoutFromHeaders(t *testing.T) {
	for program, headers := range map[string][]string{
		"layout": {"rdma/ib_user_verbs.h", "rdma/rdma_user_rxe.h"},
		"ucm":    {"rdma/rdma_user_cm.h", "rdma/ib_user_sa.h"},
	} {
		t.Run(program, func(t *testing.T) {
			require.Equal(t, golden(t, program), layoutFromHeaders(t, "testdata/"+program+".c", headers...))
		})
	}
}

// layoutFromHeaders compiles and runs a C program that prints a layout.
func layoutFromHeaders(t *testing.T, program string, headers ...string) layout {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("no gcc to compile %s; install gcc: %v", program, err)
	}
	for _, h := range headers {
		if _, err := os.Stat("/usr/include/" + h); err != nil {
			t.Skipf("no /usr/include/%s; install linux-libc-dev: %v", h, err)
		}
	}
	bin := filepath.Join(t.TempDir(), "layout")
	out, err := exec.Command(cc, "-o", bin, program).CombinedOutput()
	if err != nil {
		t.Skipf("this machine has older kernel headers; install newer ones (linux-libc-dev): %v\n%s", err, out)
	}
	text := must.Get(exec.Command(bin).Output())(t)
	return parseLayout(t, text)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 176))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range structs {
			v := reflect.New(reflect.TypeOf(s.v).Elem()).Interface().(Struct)
			if err := v.Parse(b); err != nil {
				if len(b) >= s.size {
					t.Fatalf("%s: %v with %d bytes", s.c, err, len(b))
				}
				continue
			}
			enc := make([]byte, s.size)
			v.Put(enc)
			w := reflect.New(reflect.TypeOf(s.v).Elem()).Interface().(Struct)
			if err := w.Parse(enc); err != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("%s: %+v became %+v, %v", s.c, v, w, err)
			}
		}
	})
}
