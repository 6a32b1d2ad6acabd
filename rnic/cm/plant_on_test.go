//go:build plant

package cm_test

import (
	"flag"
	"os"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/cm"
)

const planting = true

var plantFlag = flag.String("plant", "", "the mistake to make")

func TestMain(m *testing.M) {
	flag.Parse()
	if !cm.Plant(*plantFlag) {
		panic("no mistake " + *plantFlag)
	}
	os.Exit(m.Run())
}
