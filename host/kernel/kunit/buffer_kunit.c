// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of weft_buffer.c: whose send buffers grow, by how much, and when they don't. */
#include "connection.h"

#include "../weft_buffer.c"

#define BUFFER_BYTES	(64 * 1024)

/* A connection with two subflows, and what the protocol says about memory. */
struct buffer_test {
	struct mptcp_sock	*msk;
	struct sock		*ssk[2];
	struct proto		prot;
	unsigned long		pressure;
};

static struct buffer_test *new_buffers(struct kunit *test)
{
	struct buffer_test *it = kunit_kzalloc(test, sizeof(*it), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, it);
	it->msk = new_connection(test);
	it->prot.memory_pressure = &it->pressure;
	((struct sock *)it->msk)->sk_prot = &it->prot;
	((struct sock *)it->msk)->sk_sndbuf = 2 * BUFFER_BYTES;
	for (i = 0; i < ARRAY_SIZE(it->ssk); i++) {
		it->ssk[i] = mptcp_subflow_tcp_sock(add_subflow(test, it->msk, i));
		it->ssk[i]->sk_sndbuf = BUFFER_BYTES;
	}
	return it;
}

static int wmem_max(void)
{
	return init_net.ipv4.sysctl_tcp_wmem[2];
}

static void expect_as_before(struct kunit *test, const struct buffer_test *it)
{
	KUNIT_EXPECT_EQ(test, ((struct sock *)it->msk)->sk_sndbuf, 2 * BUFFER_BYTES);
	KUNIT_EXPECT_EQ(test, it->ssk[0]->sk_sndbuf, BUFFER_BYTES);
	KUNIT_EXPECT_EQ(test, it->ssk[1]->sk_sndbuf, BUFFER_BYTES);
}

static void subflows_together_have_the_buffer_of_one_connection(struct kunit *test)
{
	struct buffer_test *it = new_buffers(test);

	KUNIT_ASSERT_GT(test, wmem_max(), 4 * BUFFER_BYTES);
	weft_raise_send_buffers(it->msk);
	KUNIT_EXPECT_EQ(test, ((struct sock *)it->msk)->sk_sndbuf, wmem_max());
	KUNIT_EXPECT_EQ(test, it->ssk[0]->sk_sndbuf, wmem_max() / 2);
	KUNIT_EXPECT_EQ(test, it->ssk[1]->sk_sndbuf, wmem_max() / 2);
	weft_conn_release(it->msk);
}

static void a_buffer_that_has_grown_further_is_not_cut(struct kunit *test)
{
	struct buffer_test *it = new_buffers(test);

	it->ssk[1]->sk_sndbuf = wmem_max();
	weft_raise_send_buffers(it->msk);
	KUNIT_EXPECT_EQ(test, it->ssk[1]->sk_sndbuf, wmem_max());
	weft_conn_release(it->msk);
}

static void buffers_stay_as_they_are_while_memory_is_short(struct kunit *test)
{
	struct buffer_test *it = new_buffers(test);

	it->pressure = 1;
	weft_raise_send_buffers(it->msk);
	expect_as_before(test, it);
	it->pressure = 0;
	weft_raise_send_buffers(it->msk);
	KUNIT_EXPECT_EQ(test, it->ssk[0]->sk_sndbuf, wmem_max() / 2);
	weft_conn_release(it->msk);
}

static void buffers_that_the_application_has_set_stay_as_they_are(struct kunit *test)
{
	struct buffer_test *it = new_buffers(test);

	((struct sock *)it->msk)->sk_userlocks |= SOCK_SNDBUF_LOCK;
	weft_raise_send_buffers(it->msk);
	expect_as_before(test, it);
	weft_conn_release(it->msk);
}

static struct kunit_case buffer_cases[] = {
	KUNIT_CASE(subflows_together_have_the_buffer_of_one_connection),
	KUNIT_CASE(a_buffer_that_has_grown_further_is_not_cut),
	KUNIT_CASE(buffers_stay_as_they_are_while_memory_is_short),
	KUNIT_CASE(buffers_that_the_application_has_set_stay_as_they_are),
	{}
};

static struct kunit_suite buffer_suite = {
	.name		= "weft_buffer",
	.test_cases	= buffer_cases,
};
kunit_test_suite(buffer_suite);
