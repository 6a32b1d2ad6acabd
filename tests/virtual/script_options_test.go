package virtual

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// options are a command's words: those without "=" by their place and as flags.
type options map[string]string

func parseArgs(words []string) options {
	o := options{}
	for i, k := 0, 0; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i], "=")
		if ok {
			o[name] = value
			continue
		}
		o[strconv.Itoa(k)] = words[i]
		o["flag "+words[i]] = ""
		k++
	}
	return o
}

func (o options) word(i int) string { return o[strconv.Itoa(i)] }
func (o options) node(i int) int    { return strings.Index("ab", o.word(i)) }
func (o options) has(f string) bool { _, ok := o["flag "+f]; return ok }

func (o options) number(name string, otherwise int) int {
	v, ok := o[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil {
		panic(err)
	}
	return int(n)
}

// lists reports whether an option's list, separated by commas, has the item.
func (o options) lists(name, item string) bool {
	return slices.Contains(strings.Split(o[name], ","), item)
}

func parseDuration(text string) (engine.Time, error) {
	d, err := time.ParseDuration(text)
	return engine.Time(d), err
}
