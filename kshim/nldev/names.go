package nldev

import (
	_ "embed" // the numbers
	"fmt"
	"strings"
	"sync"
)

// numbers is a C program's print of the kernel's header: testdata/nldev.c.
//
//go:embed numbers.txt
var numbers string

type table struct {
	commands, attributes map[string]uint16
	attributeNames       map[uint16]string
}

var names = sync.OnceValue(func() (t table) {
	t = table{map[string]uint16{}, map[string]uint16{}, map[uint16]string{}}
	for line := range strings.Lines(numbers) {
		var name string
		var n uint16
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			panic(err)
		}
		if command, ok := strings.CutPrefix(name, "CMD_"); ok {
			t.commands[command] = n
			continue
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "SYS_"), "ATTR_")
		t.attributes[name], t.attributeNames[n] = n, name
	}
	return t
})

// Command is the number of a command by its name without RDMA_NLDEV_CMD_:
// "PORT_GET". It panics at a name that numbers.txt has not.
func Command(name string) uint16 { return known(names().commands, name) }

func attribute(name string) uint16 { return known(names().attributes, name) }

func known(table map[string]uint16, name string) uint16 {
	n, ok := table[name]
	if !ok {
		panic("nldev: numbers.txt has no " + name)
	}
	return n
}
