package rdma

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// filterWord is a key that a filter may name.
type filterWord struct {
	key     string
	numbers bool // takes numbers and ranges
}

// filterWords reads keys; a # marks those that take numbers.
func filterWords(s string) (list []filterWord) {
	for _, w := range strings.Fields(s) {
		key, numbers := strings.CutSuffix(w, "#")
		list = append(list, filterWord{key, numbers})
	}
	return list
}

// filter keeps rows whose key has one of the values.
type filter struct {
	filterWord
	words  []string
	ranges [][2]uint64
}

type filters []filter

// parseFilters reads [link DEV[/PORT]] and FILTER VALUE pairs, in any order;
// "dev" serves as "link".
func parseFilters(cmd string, args []string, known []filterWord) (portSpec, filters, error) {
	spec := portSpec{all: true}
	var list filters
	w := words{cmd, args}
	for len(w.rest) > 0 {
		key, _ := w.next("")
		value, err := w.next("the value of " + key)
		if err != nil {
			return spec, nil, err
		}
		if key == "link" || key == "dev" {
			if spec, err = parsePortSpec(value); err != nil {
				return spec, nil, err
			}
			continue
		}
		i := slices.IndexFunc(known, func(f filterWord) bool { return key != "" && strings.HasPrefix(f.key, key) })
		if i < 0 {
			return spec, nil, cli.Usagef("%s: no filter %q; there are: %s", cmd, key, filterNames(known))
		}
		f := filter{filterWord: known[i], words: strings.Split(strings.ToLower(value), ",")}
		if f.numbers {
			if f.ranges, err = parseRanges(value); err != nil {
				return spec, nil, cli.Usagef("%s: filter %s: %w", cmd, f.key, err)
			}
		}
		list = append(list, f)
	}
	return spec, list, nil
}

func filterNames(known []filterWord) string {
	names := []string{"link"}
	for _, f := range known {
		names = append(names, f.key)
	}
	return strings.Join(names, ", ")
}

// parseRanges reads numbers and ranges: 1,4-7.
func parseRanges(s string) (list [][2]uint64, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		var r [2]uint64
		if r[0], err = strconv.ParseUint(low, 10, 64); err == nil {
			r[1], err = strconv.ParseUint(high, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no number or range; write 17 or 1,4-7", part)
		}
		list = append(list, r)
	}
	return list, nil
}

// match says whether a row passes all filters. A row without the key does not.
func (l filters) match(r *row) bool {
	for _, f := range l {
		v, ok := r.get(f.key)
		if !ok || !f.match(v) {
			return false
		}
	}
	return true
}

func (f *filter) match(v string) bool {
	if !f.numbers {
		return slices.Contains(f.words, strings.ToLower(v))
	}
	n, err := strconv.ParseUint(v, 10, 64)
	return err == nil && slices.ContainsFunc(f.ranges, func(r [2]uint64) bool { return r[0] <= n && n <= r[1] })
}

// get finds a value by its key; hidden values go first.
func (r *row) get(key string) (string, bool) {
	if v, ok := r.hidden[key]; ok {
		return v, true
	}
	for _, f := range r.fields {
		if f.key == key {
			return fmt.Sprint(f.value), true
		}
	}
	return "", false
}

// address adds an address with its port, which filters see apart.
func (r *row) address(side string, a netip.AddrPort) {
	if !a.IsValid() {
		return
	}
	// iproute2 writes IPv6 addresses without brackets.
	s := fmt.Sprintf("%s:%d", a.Addr(), a.Port())
	r.add(keyed(side+"-addr", s))
	r.hidden[side+"-addr"] = a.Addr().String()
	r.hidden[side+"-port"] = strconv.Itoa(int(a.Port()))
}
