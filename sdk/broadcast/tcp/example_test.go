// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package tcp_test

import (
	"context"
	"fmt"
	"time"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/tcp"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// tcp.FromEnv(29517) where torchrun or srun started the process.
	transport, err := tcp.New(tcp.Config{
		Member:  broadcast.Member{Job: "job 7, attempt 1", Rank: 0, WorldSize: 1},
		Address: "node-0:29517",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx = lens.Extract(ctx, map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"})
	carrier, err := lens.Broadcast(ctx, transport, 0)
	fmt.Println(carrier["traceparent"], err)
	// Output: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03 <nil>
}
