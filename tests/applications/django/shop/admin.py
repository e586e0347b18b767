"""The admin with what it can ask of a database: search, filters, date hierarchy, inlines, editable lists, counts."""

from django.contrib import admin

from .models import Book, Category, Customer, Line, Order, Product, Tag


class LineInline(admin.TabularInline):
    model = Line
    extra = 0


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ["name", "price", "with_tax", "size", "active", "category"]
    list_editable = ["price", "active"]
    list_filter = ["active", "size", "category", "created", "tags"]
    search_fields = ["name", "slug", "tags__name", "=code"]
    date_hierarchy = "released"
    filter_horizontal = ["tags"]
    autocomplete_fields = ["category"]
    prepopulated_fields = {"slug": ["name"]}
    show_facets = admin.ShowFacets.ALWAYS
    actions = ["withdraw"]

    @admin.action(description="Withdraw")
    def withdraw(self, request, queryset):
        queryset.update(active=False)


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin):
    search_fields = ["name"]
    list_display = ["name", "parent"]


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    inlines = [LineInline]
    date_hierarchy = "placed"
    list_filter = ["state", "customer__language"]
    raw_id_fields = ["customer"]


admin.site.register([Book, Tag, Customer])
