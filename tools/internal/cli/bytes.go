package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// BytesVar adds a flag of a number of bytes to f: 65536, 64K, 64Ki or 64KiB, of
// which the last three are one, as perftest has it; M and G likewise.
func BytesVar[T int | int64](f *pflag.FlagSet, p *T, name, short string, value T, usage string) {
	unitsVar(f, p, name, short, value, usage, 1)
}

// MiBVar is BytesVar of whole MiB, which a bare number counts.
func MiBVar(f *pflag.FlagSet, p *int, name string, value int, usage string) {
	unitsVar(f, p, name, "", value, usage, 1<<20)
}

func unitsVar[T int | int64](f *pflag.FlagSet, p *T, name, short string, value T, usage string, unit int64) {
	*p = value
	f.VarP(&bytesFlag[T]{p, unit}, name, short, usage)
}

// ParseBytes reads a number of bytes as BytesVar's flags do.
func ParseBytes(text string) (n int64, err error) {
	err = (&bytesFlag[int64]{&n, 1}).Set(text)
	return n, err
}

// bytesFlag is the value of such a flag, which counts units of bytes.
type bytesFlag[T int | int64] struct {
	p    *T
	unit int64
}

func (b *bytesFlag[T]) String() string {
	if b.p == nil { // how pflag makes the zero value
		return "0"
	}
	return strconv.FormatInt(int64(*b.p), 10)
}

func (*bytesFlag[T]) Type() string { return "bytes" }

func (b *bytesFlag[T]) Set(text string) error {
	number, unit := text, b.unit
	for i, letter := range "KMG" {
		for _, suffix := range []string{"", "i", "iB"} {
			if n, ok := strings.CutSuffix(strings.ToUpper(text), strings.ToUpper(string(letter)+suffix)); ok {
				number, unit = n, 1<<(10*(i+1))
			}
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	most := math.MaxInt64 / unit
	switch {
	case err != nil || n < -most || n > most:
		return errors.New("want a number of bytes like 65536, 64K, 1M or 256Mi")
	case n*unit%b.unit != 0 || int64(T(n*unit/b.unit)) != n*unit/b.unit:
		return fmt.Errorf("want a multiple of %s, and no more than this machine counts", Size(b.unit))
	}
	*b.p = T(n * unit / b.unit)
	return nil
}
