//go:build plant

package soak

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

const (
	planting   = true
	replayTags = "-tags plant "
)

func replayPlant() string { return " -plant=" + *flagPlant }

var flagPlant = flag.String("plant", "", "the mistake that the engines make; list: print those there are")

func TestMain(m *testing.M) {
	flag.Parse()
	if *flagPlant == "list" {
		fmt.Println(strings.Join(engine.Plants(), " "))
		os.Exit(0)
	}
	if !engine.Plant(*flagPlant) {
		fmt.Fprintf(os.Stderr, "unknown mistake %q, there are %q\n", *flagPlant, engine.Plants())
		os.Exit(2)
	}
	os.Exit(m.Run())
}
