// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

// threadOf is the thread of the spans of a run, by the threads policy. Empty: none.
func (s *Shaper) threadOf(run, rank string) string {
	switch {
	case run == "" || s.opts.Threads == ThreadsOff:
		return ""
	case s.opts.Threads == ThreadsRank && rank != "":
		return run + "/rank" + rank
	}
	return run
}

// inThread tells whether Weave puts a span with these attributes into a thread.
func inThread(list []attr) bool {
	for i := range list {
		switch list[i].key {
		case threadKey, conversationKey, sessionKey:
			return true
		}
	}
	return false
}

// turn is what a span of a thread says about itself: the root of a trace is a turn, and nothing else. Without it Weave makes a turn of every
// span with a conversation id (wandb/weave#7066).
func turn(s *span) bool { return s.parent.IsEmpty() }
