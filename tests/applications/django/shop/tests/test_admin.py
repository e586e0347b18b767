"""The admin as a browser uses it: log in, lists with search and filters, forms, inlines, actions, deletion, history."""

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client, TestCase

from ..models import Category, Order, Product
from .base import Rows


class Admin(Rows, TestCase):
    def setUp(self):
        User.objects.create_superuser("root", "root@example.org", "root-pass")
        self.client = Client()
        answer = self.client.post("/admin/login/?next=/admin/", {"username": "root", "password": "root-pass"})
        self.assertRedirects(answer, "/admin/")

    def page(self, path, status=200):
        answer = self.client.get("/admin/" + path)
        self.assertEqual(answer.status_code, status, path)
        return answer

    def test_login_keeps_a_session_in_the_database(self):
        self.assertEqual(Session.objects.count(), 1)
        self.page("")
        self.client.post("/admin/logout/")
        self.page("", 302)
        self.assertEqual(self.client.post("/admin/login/", {"username": "root", "password": "no"}).status_code, 200)

    def test_lists(self):
        self.assertEqual(self.page("shop/product/").context["cl"].result_count, 12)
        self.assertEqual(self.page("shop/product/?q=product+1").context["cl"].result_count, 4)
        self.assertEqual(self.page("shop/product/?q=sale").context["cl"].result_count, 3)
        self.assertEqual(self.page("shop/product/?active__exact=0&size__exact=M").context["cl"].result_count, 1)
        self.assertEqual(self.page("shop/product/?released__year=2024&released__month=3").context["cl"].result_count, 1)
        self.assertEqual(self.page("shop/product/?tags__name__exact=new&o=-2.1").context["cl"].result_count, 9)
        self.assertEqual(
            self.page(f"shop/product/?category__id__exact={self.toys.pk}&p=1&all=").context["cl"].result_count, 6
        )
        self.assertEqual(self.page("shop/order/?placed__year=2024&state__exact=2").context["cl"].result_count, 3)
        for path in (
            "auth/user/",
            "auth/group/",
            "shop/category/?q=to",
            "shop/customer/",
            "shop/book/",
            "shop/tag/",
            "sites/site/",
            "flatpages/flatpage/",
        ):
            self.page(path)
        found = self.client.get(
            "/admin/autocomplete/?app_label=shop&model_name=product&field_name=category&term=too"
        ).json()
        self.assertEqual([r["text"] for r in found["results"]], ["tools"])

    def test_forms(self):
        form = {
            "name": "fresh",
            "slug": "fresh",
            "price": "9.99",
            "tax": "0.1",
            "stock": "1",
            "size": "S",
            "active": "on",
            "attributes": '{"a": [1]}',
            "category": self.toys.pk,
            "tags": ["new", "red"],
            "released": "2024-05-05",
            "seen_0": "2024-05-05",
            "seen_1": "10:00:00",
        }
        self.assertRedirects(self.client.post("/admin/shop/product/add/", form), "/admin/shop/product/")
        product = Product.objects.get(slug="fresh")
        self.assertEqual((product.attributes, product.tags.count(), str(product.with_tax)), ({"a": [1]}, 2, "10.9890"))
        again = self.client.post("/admin/shop/product/add/", form)
        self.assertContains(again, "already exists")
        self.page(f"shop/product/{product.pk}/change/")
        self.client.post(f"/admin/shop/product/{product.pk}/change/", {**form, "name": "renamed", "tags": []})
        product.refresh_from_db()
        self.assertEqual((product.name, product.tags.count()), ("renamed", 0))
        self.assertContains(self.page(f"shop/product/{product.pk}/history/"), "Changed")
        self.assertEqual(LogEntry.objects.count(), 2)
        order = self.orders[0]
        line = order.lines.first()
        inline = {
            "customer": order.customer_id,
            "state": 3,
            "placed_0": "2024-02-02",
            "placed_1": "02:02:02",
            "lines-TOTAL_FORMS": 2,
            "lines-INITIAL_FORMS": 1,
            "lines-0-id": line.pk,
            "lines-0-order": order.pk,
            "lines-0-product": line.product_id,
            "lines-0-amount": 42,
            "lines-0-price": "1.00",
            "lines-1-order": order.pk,
            "lines-1-product": product.pk,
            "lines-1-amount": 2,
            "lines-1-price": "3.00",
        }
        self.assertRedirects(self.client.post(f"/admin/shop/order/{order.pk}/change/", inline), "/admin/shop/order/")
        self.assertEqual(
            (order.lines.count(), order.lines.get(pk=line.pk).amount, Order.objects.get(pk=order.pk).state), (4, 42, 3)
        )

    def test_actions_and_deletion(self):
        ids = [p.pk for p in self.products[:3]]
        self.client.post("/admin/shop/product/", {"action": "withdraw", "_selected_action": ids})
        self.assertEqual(Product.objects.filter(pk__in=ids, active=False).count(), 3)
        # what is sold is protected, what is not can go
        protected = self.client.post("/admin/shop/product/", {"action": "delete_selected", "_selected_action": ids})
        self.assertContains(protected, "would require deleting the following protected related objects")
        last = self.products[-1]
        self.client.post(
            "/admin/shop/product/", {"action": "delete_selected", "_selected_action": [last.pk], "post": "yes"}
        )
        self.assertFalse(Product.objects.filter(pk=last.pk).exists())
        category = Category.objects.create(name="to delete")
        Category.objects.create(name="below", parent=category)
        self.assertContains(self.page(f"shop/category/{category.pk}/delete/"), "below")
        self.client.post(f"/admin/shop/category/{category.pk}/delete/", {"post": "yes"})
        self.assertFalse(Category.objects.filter(name="below").exists())

    def test_changing_a_list_in_place(self):
        listed = self.page("shop/product/").context["cl"].formset
        form = {"form-TOTAL_FORMS": 12, "form-INITIAL_FORMS": 12, "_save": "Save"}
        for n, one in enumerate(listed.forms):
            form |= {f"form-{n}-id": one.instance.pk, f"form-{n}-price": "7.50", f"form-{n}-active": "on"}
        self.assertRedirects(self.client.post("/admin/shop/product/", form), "/admin/shop/product/")
        self.assertEqual(Product.objects.filter(price="7.50", active=True).count(), 12)
