package main

import (
	"fmt"
	"slices"
	"strings"
)

// golden is the output of the C programs of testdata.
type golden struct {
	structs map[string]*cStruct
	values  []cValue // in the order of the file
}

type cStruct struct {
	size   int
	fields []cField // by offset
}

type cField struct {
	name      string
	off, size int
}

type cValue struct {
	name   string
	number uint64
}

func parseGolden(text string) (*golden, error) {
	g := &golden{structs: map[string]*cStruct{}}
	for line := range strings.Lines(text) {
		var owner string
		var s cStruct
		var f cField
		var v cValue
		if n, _ := fmt.Sscanf(line, "struct %s %d", &owner, &s.size); n == 2 {
			g.structs[owner] = &s
		} else if n, _ := fmt.Sscanf(line, "field %s %s %d %d", &owner, &f.name, &f.off, &f.size); n == 4 && g.structs[owner] != nil {
			g.structs[owner].fields = append(g.structs[owner].fields, f)
		} else if n, _ := fmt.Sscanf(line, "value %s %d", &v.name, &v.number); n == 2 {
			g.values = append(g.values, v)
		} else {
			return nil, fmt.Errorf("golden: cannot read %q", line)
		}
	}
	for _, s := range g.structs {
		slices.SortStableFunc(s.fields, func(a, b cField) int { return a.off - b.off })
	}
	return g, nil
}
