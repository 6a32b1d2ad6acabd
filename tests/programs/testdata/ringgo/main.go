// Command ringgo is ring.c as a program of uapi, on the device of the kernel
// that it runs under.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/rdmashim/rdmashim/uapi"
)

const size = 64 // of a message

func main() {
	turns, _ := strconv.Atoi(os.Args[2])
	d := must(uapi.Open("host:rxe0", uapi.OpenConfig{}))
	page := make([]byte, 2*size) // what is sent, what is received
	mr := must(d.RegMR(page, uapi.AccessLocalWrite))
	left, right := must(d.CreateQP(1, 1)), must(d.CreateQP(1, 1))
	toLeft, toRight := must(d.LocalEndpoint(left)), must(d.LocalEndpoint(right))
	fmt.Printf("ready\n%d %d %d %d\n", toLeft.QPN, toLeft.PSN, toRight.QPN, toRight.PSN)
	must(fmt.Scanln(&toLeft.QPN, &toLeft.PSN, &toRight.QPN, &toRight.PSN))
	check(d.ConnectQP(left, toLeft))
	check(d.ConnectQP(right, toRight))
	fmt.Println("joined")
	fmt.Scanln()
	var text []byte
	for i := range turns {
		if i%4 == 0 {
			text = nil
		}
		text = append(text, os.Args[1]...)
		clear(page[copy(page[:size], text):size])
		must(d.PostRecv(left, mr, size, size))
		must(d.PostSend(right, mr, size))
		for _, qp := range []uapi.QP{left, right} {
			var wc [1]uapi.WC
			must(d.WaitCQ(context.Background(), qp, wc[:]))
			if wc[0].Status != uapi.WCSuccess {
				log.Fatal(wc[0])
			}
		}
		text = bytes.TrimRight(page[size:], "\x00")
		text = bytes.Clone(text)
	}
	fmt.Printf("%s\n", text)
	check(d.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
