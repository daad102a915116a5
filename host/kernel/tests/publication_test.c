// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the scheduler publishes for data_acked(), which may run on another CPU: its state and
 * the slots of subflows (connection.c). One thread schedules and another one looks. Built
 * with ThreadSanitizer, which reports what the second reads of the first one's writes
 * without an order between them, in whatever order they ran here.
 */
#include <pthread.h>
#include <sched.h>

#include "../connection.c"
#include "tap.h"

#define STATE_WORDS	32

/* --- What connection.c calls of other files. ------------------------------- */

int weft_packet_payload(const struct sock *ssk)
{
	return 1;
}

int weft_window_space(const struct sock *ssk)
{
	return 1;
}

void weft_mark_data(struct mptcp_sock *msk, struct sock *ssk)
{
}

/* --- ThreadSanitizer. ------------------------------------------------------ */

static int races;

/* It calls this for each report, from the thread that noticed. */
void __tsan_on_report(void *unused);
void __tsan_on_report(void *unused)
{
	__atomic_add_fetch(&races, 1, __ATOMIC_RELAXED);
}

/* Reports are wanted here; TSAN_OPTIONS=log_path=stderr prints them. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "exitcode=0:log_path=/dev/null";
}

/* --- Two threads with one connection. -------------------------------------- */

static struct sock tcp;
static struct mptcp_subflow_context subflow = { .tcp_sock = &tcp };

static void *schedule(void *connection)
{
	struct mptcp_sock *msk = connection;
	struct weft_usable usable;

	weft_usable(msk, &usable);
	weft_state(msk, STATE_WORDS * sizeof(u64));
	return NULL;
}

/* The number of words of @state that are not zero. */
static void *look_at_state(void *connection)
{
	const u64 *state;
	uintptr_t words = 0;
	int i;

	while (!(state = weft_peek_state(connection)))
		sched_yield();
	for (i = 0; i < STATE_WORDS; i++)
		words += state[i] != 0;
	return (void *)words;
}

/* What the slot of the subflow is said to have carried. */
static void *look_at_slot(void *connection)
{
	const struct weft_conn *conn = weft_conn(connection);
	int slot;

	while ((slot = weft_slot(conn, &subflow)) < 0)
		sched_yield();
	return (void *)(uintptr_t)(conn->subflow[slot].packets + conn->subflow[slot].bytes);
}

/* How many reads of @look have no order after the writes that they see; -1: wrong result. */
static int races_of(void *(*look)(void *))
{
	struct mptcp_sock msk = { .first = &subflow };
	pthread_t scheduler, looker;
	void *seen;

	subflow.conn = &msk.sk;
	weft_conn_init(&msk);
	races = 0;
	/* it waits, so that no order comes from the start of the other */
	assert(!pthread_create(&looker, NULL, look, &msk));
	assert(!pthread_create(&scheduler, NULL, schedule, &msk));
	assert(!pthread_join(scheduler, NULL));
	assert(!pthread_join(looker, &seen));
	weft_conn_release(&msk);
	return seen ? -1 : races;
}

int main(void)
{
	report(races_of(look_at_state) == 0,
	       "who sees a scheduler's state sees that it is zeroed");
	report(races_of(look_at_slot) == 0,
	       "who sees a subflow's slot sees that it is emptied");
	publishes_without_order = true;
	report(races_of(look_at_state) > 0,
	       "a state that is published without an order is noticed");
	report(races_of(look_at_slot) > 0,
	       "a slot that is published without an order is noticed");
	return done_testing();
}
